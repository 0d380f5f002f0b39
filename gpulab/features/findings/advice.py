"""What the rules say of a variant, as plain data: what was found, its share of the step, its
evidence, what to change; and what could not be judged.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.findings import Finding


class Source(StrEnum):
    """The source of a number."""

    MEASURED = "measured"
    """Timed without the profiler, or counted by the lab."""
    PROFILED = "profiled"
    """Of a recording."""
    STATIC = "static"
    """Of a compiler's output, or of a program's text."""
    TELEMETRY = "telemetry"
    DECLARED = "declared"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One number behind a finding; `unit` is "share", "s", "bytes", "FLOP/s", or what is
    counted.
    """

    name: str
    value: float
    unit: str
    source: Source


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the rules. `share` is that of the step which it is about: what a change would
    gain is not known until it is measured.

    `change` says what to change in a sentence, `code` in three lines. `lesson` is the scenario that
    shows it.
    """

    finding: Finding
    share: float
    evidence: list[Evidence]
    change: str
    code: list[str]
    lesson: str


class NotJudged(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that abstained: the code of its finding, the measurement that is missing, and the
    flags that bring it; empty where nothing here can.
    """

    code: str
    missing: str
    flags: str = ""
