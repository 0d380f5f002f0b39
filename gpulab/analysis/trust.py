"""Why a comparison may be believed: the checks that ran, what each showed, and the grade that follows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpulab.protocol.finding import Finding
from gpulab.protocol.statuses import CheckKind, CheckState, Grade


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of check of a comparison: `result` is what it showed, or why it did not run."""

    kind: CheckKind
    state: CheckState
    result: Finding | None = None


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """The grade of a comparison with its reasons, and all checks in the order of `CheckKind`.

    `grade` is None where the comparison claims nothing: its verdict is wrong or invalid.
    """

    grade: Grade | None = None
    reasons: list[Finding] = []
    checks: list[Check] = []

    @property
    def ran(self) -> int:
        """How many of the checks ran."""
        return sum(check.state != CheckState.NOT_RUN for check in self.checks)


def grade_of(*, claims: bool, compared: bool, doubts: Sequence[Finding]) -> Grade | None:
    """`claims`: the verdict gives a speedup; `compared`: outputs were; `doubts`: what speaks against it."""
    if not claims:
        return None
    if not compared:
        return Grade.UNCHECKED
    return Grade.DOUBTFUL if doubts else Grade.VERIFIED
