"""Exit codes and conclusions of a run, and which of several counts."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class ExitCode(IntEnum):
    """Of runs. A usage error, 2, ends a command before there is any."""

    MEASURED = 0
    FAILED = 3
    WRONG = 4
    SLOWER = 5
    INCONCLUSIVE = 6
    INVALID = 7
    INTERRUPTED = 130


class Conclusion(StrEnum):
    """What a run came to. UNDER_WAY and SKIPPED have no exit code of their own."""

    MEASURED = "measured"
    FAILED = "failed"
    WRONG = "wrong"
    SLOWER = "slower than required"
    INCONCLUSIVE = "inconclusive"
    INVALID = "invalid"
    INTERRUPTED = "interrupted"
    UNDER_WAY = "under way"
    SKIPPED = "skipped"


_PRECEDENCE = (
    ExitCode.INTERRUPTED,
    ExitCode.FAILED,
    ExitCode.WRONG,
    ExitCode.INVALID,
    ExitCode.SLOWER,
    ExitCode.INCONCLUSIVE,
    ExitCode.MEASURED,
)


def conclusion_of(code: ExitCode | None) -> Conclusion:
    """None is the exit code of a run under way."""
    return Conclusion.UNDER_WAY if code is None else Conclusion[code.name]


def first_in_order(codes: Iterable[ExitCode | None]) -> ExitCode:
    """Of several exit codes the one that counts for all of them; None, of a run under way, does not count."""
    present = set(codes)
    return next((code for code in _PRECEDENCE if code in present), ExitCode.MEASURED)
