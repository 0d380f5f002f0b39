"""What the rules say of a variant, as plain data: what was found, its evidence, what it would gain,
what to change; and what could not be judged.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.findings import Finding


class Source(StrEnum):
    """Where a number comes from."""

    MEASURED = "measured"
    """Timed without the profiler, or counted by the lab."""
    PROFILED = "profiled"
    """Of a recording."""
    STATIC = "static"
    """Of a compiler's output, or of a program's text."""
    TELEMETRY = "telemetry"
    DECLARED = "declared"
    DERIVED = "derived"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One number behind a finding; `unit` is "share", "s", "bytes", "FLOP/s", or what is
    counted.
    """

    name: str
    value: float
    unit: str
    source: Source


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the rules. `gain_low` and `gain_high` bound the share of the step that it
    takes, `speedup_low` and `speedup_high` what the step would gain: bounds, not measurements.

    `change` says what to change in a sentence, `code` in three lines. `lesson` is the scenario that
    shows it. `within` is the code of the finding that it is a part of, and that caps what it gains.
    """

    finding: Finding
    gain_low: float
    gain_high: float
    speedup_low: float
    speedup_high: float
    evidence: list[Evidence]
    change: str
    code: list[str]
    lesson: str
    within: str | None = None


class NotJudged(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that abstained: the code of its finding, the measurement that is missing, and the
    flags that bring it; empty where nothing here can.
    """

    code: str
    missing: str
    flags: str = ""
