"""Reports of recorded runs in which every text was replaced by one that would forge a line, or
drive a terminal.
"""

import msgspec
import pytest
from recorded import NAMES

from gpulab.core.payloads import CATEGORIES
from gpulab.core.statuses import Clock
from gpulab.features.roofline.events import Ceiling
from gpulab.features.telemetry.fields import FIELDS
from gpulab.report.sentences import declarations

VARIED = {
    *("checks", "h200/cold_start", "double_buffering-h100", "healthy", "raises"),
    *("standin-no-gpm", "standin-throttled", "h200/utilization"),
}
"""Recordings that between them have nine of ten fields and findings of all."""
EACH_RECORDING = pytest.mark.parametrize(
    "recorded",
    [pytest.param(name, marks=[pytest.mark.slow] * (name not in VARIED)) for name in NAMES],
)
FORGED = "FORGED"
INVISIBLE = "\x1b[31m\x9b1m\x07\x00\u202e\u2066\u200b\u2028\x85\ud800\r"
"""Escape sequences, bells, bidirectional and zero-width characters, line separators, half of a
surrogate pair.
"""
HOSTILE = f"{INVISIBLE}x\n\n{FORGED}  faster  9.99x\n\t"
_BLOCKS = frozenset({"traceback", "lesson"})
"""Fields whose text has lines of its own: they are shown as a block."""
CLOCKS = frozenset(Clock)
"""Names that only the lab makes, whoever wrote the run file."""
DECODED = frozenset(CATEGORIES) | {"8.0", "9.0"}
"""No file with another text in their place is read."""
KNOWN = (
    frozenset(declarations()) | frozenset(FIELDS) | CLOCKS | {"cuda", "cpu", "FLOP/s", "B/s", "s"}
)
"""What must stay for the views to draw all they can."""


def hostile(value, known=KNOWN, text=HOSTILE):
    """The same value with `text` before every text but those of enumerations, and those that are
    `known`.
    """
    if type(value) is str:
        return value if value in known else text + value
    if isinstance(value, Ceiling) and known is KNOWN:  # its texts are words of the lab
        return value
    if isinstance(value, msgspec.Struct):
        texts = {name: INVISIBLE if name in _BLOCKS else text for name in value.__struct_fields__}
        return type(value)(
            **{name: hostile(getattr(value, name), known, text) for name, text in texts.items()}
        )
    if isinstance(value, dict):
        # without them a sentence has none of the values
        keys = known | value.keys() if known is KNOWN else known
        return {hostile(key, keys, text): hostile(item, known, text) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(hostile(item, known, text) for item in value)
    return value
