"""Which lines of a text another one does not have."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

_MOST_PAIRS = 10_000_000
"""Of lines that are compared with one another: more would take seconds."""


def differing(lines: Sequence[str], others: Sequence[str]) -> set[int]:
    """Places of the lines that the others do not have, nor in their order; of long texts those they have nowhere."""
    if len(lines) * len(others) > _MOST_PAIRS:
        theirs = set(others)
        return {place for place, line in enumerate(lines) if line not in theirs}
    changes = SequenceMatcher(None, others, lines, autojunk=False).get_opcodes()
    return {place for kind, _, _, start, end in changes if kind in ("insert", "replace") for place in range(start, end)}
