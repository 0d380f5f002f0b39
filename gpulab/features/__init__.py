"""What the lab can do: one folder for each feature, and the list of those that have a part of the
report.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.report.feature import Feature


@cache
def features() -> tuple[Feature, ...]:
    """In the order in which the fold and the report call them, at each step the first one first."""
    # imported at the first call: a worker imports from these folders, and folds nothing
    from gpulab.features.alone.report import ALONE
    from gpulab.features.checks.report import CHECKS
    from gpulab.features.findings.report import FINDINGS
    from gpulab.features.first_steps.report import FIRST_STEPS
    from gpulab.features.fixes.report import FIXES
    from gpulab.features.goodput.report import GOODPUT
    from gpulab.features.history.report import HISTORY
    from gpulab.features.kernels.report import KERNELS
    from gpulab.features.late.report import LATE
    from gpulab.features.memory.report import MEMORY
    from gpulab.features.program.report import PROGRAM
    from gpulab.features.ranks.report import RANKS
    from gpulab.features.roofline.report import ROOFLINE
    from gpulab.features.telemetry.report import TELEMETRY
    from gpulab.features.tuning.report import TUNING
    from gpulab.features.what_if.report import WHAT_IF

    return (
        TELEMETRY,  # which samples do not count: all else is of those that are left
        PROGRAM,  # what the time of its step is
        LATE,  # which rank that step waits for
        FIRST_STEPS,  # where they are the lesson, what the time of a step is
        MEMORY,
        RANKS,
        KERNELS,
        TUNING,
        ROOFLINE,  # of that time; what is faster than its device is invalid, whatever else it is
        GOODPUT,  # its efficiency is of the roofline's point
        ALONE,  # reads solo runs with their clocks; what it contradicts has no verdict
        HISTORY,  # of the comparisons that are left
        CHECKS,  # what a comparison is worth, by all that was found before
        FINDINGS,  # of the whole report
        FIXES,  # what each gained, and which finding it answers
        WHAT_IF,
    )
