"""The row of its bill that the late rank has more of than the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from statistics import median
from typing import Any

from msgspec.structs import replace

from gpulab.features.late.result import JobReport, LateRank
from gpulab.features.late.statuses import LateCause
from gpulab.report.report import RunReport

EXPLAINS = 0.5
"""Of the lateness, from which on a row is its cause; over twice of it, a row is of something else,
such as a preparation that others do not have.
"""
_CERTAIN = 2.0
"""Standard errors of what was sampled."""
_COLLECTOR = "garbage collection"
_LOADS = ("data", "first batch of an epoch")
_NOT_OF_STEPS = {
    "import",
    "compile",
    "preempted",
    "collectives",
    "recorded by gpulab",
    "start of the interpreter",
    "end of the process",
    "rows below 0.5 %",
    "unbooked",
}
"""Others wait for the late rank in collectives; who does more is kept from its CPU more."""


def with_row(job: JobReport, report: RunReport) -> JobReport:
    """Return the report with the row that proves the cause of the late rank, where there is one."""
    late, bill = job.late, report.get("bill")
    if late is None or bill is None:
        return job
    bills = [each for each in bill.bills if each.role == "program" and each.rank is not None]
    own = [each for each in bills if each.rank == late.rank]
    others = [each for each in bills if each.rank != late.rank]
    if not own or not others:
        return job
    counted = sum(kind.count for kind in own[-1].steps)
    late_s = late.late_s * max(job.steps, counted)
    found = [
        (excess_s, row)
        for row in own[-1].rows
        if row.cause not in _NOT_OF_STEPS
        and _CERTAIN * row.error_s < (excess_s := _excess_s(row, others)) <= late_s / EXPLAINS
    ]
    if not found:
        return job
    excess_s, row = max(found, key=lambda each: each[0])
    late = replace(late, row=_words(row), row_s=excess_s)
    if excess_s >= EXPLAINS * late_s:
        late = _because(late, row, excess_s / late_s * late.late_s)
    return replace(job, late=late)


def _excess_s(row: Any, others: Sequence[Any]) -> float:
    """Return the seconds of a row beyond the median of the others."""
    of_others = [
        sum(each.seconds for each in other.rows if _key(each) == _key(row)) for other in others
    ]
    return float(row.seconds - median(of_others))


def _key(row: Any) -> tuple[str, str, str, str]:
    return row.cause, row.of, row.file, row.function


def _because(late: LateRank, row: Any, per_step_s: float) -> LateRank:
    """Return the lateness by that row; a part of the step that explains as much is kept."""
    if row.cause == _COLLECTOR:
        return replace(late, cause=LateCause.GC, excess_s=per_step_s)
    if row.cause in _LOADS:
        return replace(late, cause=LateCause.LOADER, excess_s=per_step_s)
    if late.cause in (LateCause.UNKNOWN, LateCause.CPU_STOLEN, LateCause.GC):
        return replace(late, cause=LateCause.LINE, excess_s=per_step_s)
    return late


def _words(row: Any) -> str:
    """Return the cause and the line of a row."""
    words = f"{row.cause or row.of}".strip()
    if not row.file:
        return words
    line = f":{row.lines[0]}" if row.lines else ""
    place = f"{PurePath(row.file).name}{line} {row.function}".strip()
    return f"{words} at {place}" if words else place
