"""The row of its bill that the late rank has more of than the others."""

from __future__ import annotations

from collections import defaultdict
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
_Key = tuple[str, str, str, str]
_LOADS = ("data", "first batch of an epoch")
_NOT_OF_STEPS = {
    "import",
    "compile",
    "garbage collection",
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
    if late is None or bill is None or late.cause == LateCause.CPU_STOLEN:
        return job
    bills = [each for each in bill.bills if each.role == "program" and each.rank is not None]
    own = [each for each in bills if each.rank == late.rank]
    others = [each for each in bills if each.rank != late.rank]
    if not own or not others:
        return job
    steps = sum(kind.count for kind in own[-1].steps) or job.steps
    late_s = late.late_s * steps
    collected_s = steps * _collected_s(job, late.rank)
    taken = [_taken(each) for each in others]
    found = [
        (seconds - median(each.get(key, 0.0) for each in taken), key)
        for key, seconds in _taken(own[-1]).items()
    ]
    found = [each for each in found if each[0] <= late_s / EXPLAINS]
    excess_s, key = max(found, default=(0.0, None))
    if collected_s > max(excess_s, EXPLAINS * late_s):
        late = replace(late, cause=LateCause.GC, excess_s=collected_s / steps)
        return replace(job, late=replace(late, row="garbage collection", row_s=collected_s))
    rows = [row for row in own[-1].rows if _key(row) == key]
    if excess_s <= _CERTAIN * sum(row.error_s for row in rows):
        # others wait for it in theirs, so only the parts tell how much longer its backward is
        rows = [row for row in own[-1].rows if row.cause == late.cause == LateCause.BACKWARD]
        excess_s = late.excess_s * steps
    if not rows:
        return job
    late = replace(late, row=_words(rows[0]), row_s=excess_s)
    if excess_s >= EXPLAINS * late_s:
        late = _because(late, rows[0], excess_s / steps)
    return replace(job, late=late)


def _collected_s(job: JobReport, late: int) -> float:
    """Return the seconds of a step that garbage collection takes beyond the others: most of the
    whole process are of its imports.
    """
    own = sum(rank.gc_s for rank in job.ranks if rank.rank == late)
    return own - median(rank.gc_s for rank in job.ranks if rank.rank != late)


def _taken(bill: Any) -> dict[_Key, float]:
    """Return the seconds of rows; all that a function calls in packages is one."""
    found: dict[_Key, float] = defaultdict(float)
    for row in bill.rows:
        if row.cause not in _NOT_OF_STEPS:
            found[_key(row)] += row.seconds
    return found


def _key(row: Any) -> _Key:
    return row.cause, row.of if row.cause else "", row.file, row.function


def _because(late: LateRank, row: Any, per_step_s: float) -> LateRank:
    """Return the lateness by that row; a part of the step that explains as much is kept."""
    if row.cause in _LOADS:
        return replace(late, cause=LateCause.LOADER, excess_s=per_step_s)
    if late.cause in (LateCause.UNKNOWN, LateCause.CPU_STOLEN):
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
