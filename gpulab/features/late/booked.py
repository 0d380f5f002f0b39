"""The row of its bill that the late rank has more of than the others."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath
from statistics import median
from typing import Any

from msgspec.structs import replace

from gpulab.features.late.analysis import EXPLAINS
from gpulab.features.late.result import JobReport, LateCause, LateRank
from gpulab.report.report import RunReport

_CERTAIN = 2.0
"""Standard errors of what was sampled."""
_Key = tuple[str, str, str, str]
_PREEMPTED, _COLLECTOR = "preempted", "garbage collection"
_LOADS = ("data", "first batch of an epoch")
_NOT_OF_STEPS = {
    "import",
    "compile",
    _COLLECTOR,
    _PREEMPTED,
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
    bills = {each.rank: each for each in bill.bills if each.role == "program"}
    own = bills.pop(late.rank, None)
    others = [each for rank, each in bills.items() if rank is not None]
    if own is None or not others:
        return job
    steps = sum(kind.count for kind in own.steps) or job.steps
    return replace(job, late=_proved(late, job, own, others, steps))


def _proved(late: LateRank, job: JobReport, own: Any, others: list[Any], steps: int) -> LateRank:
    late_s = late.late_s * steps
    taken = [_taken(each) for each in others]
    found = [
        (seconds - median(each.get(key, 0.0) for each in taken), key)
        for key, seconds in _taken(own).items()
    ]
    # what is over twice of it is of something else, such as a preparation that others do not have
    found = [each for each in found if each[0] <= late_s / EXPLAINS]
    excess_s, key = max(found, default=(0.0, None))
    collected_s = steps * _collected_s(job, late.rank)
    if collected_s > max(excess_s, EXPLAINS * late_s):
        return _because(late, LateCause.GC, _COLLECTOR, collected_s, steps)
    stolen_s = _stolen_s(own, others)
    if late.cause != LateCause.LOADER and stolen_s >= EXPLAINS * late_s:
        return _because(late, LateCause.CPU_STOLEN, _PREEMPTED, stolen_s, steps)
    rows = [row for row in own.rows if _key(row) == key]
    if excess_s <= _CERTAIN * sum(row.error_s for row in rows):
        # others wait for it in theirs, so only the parts tell how much longer its backward is
        rows = [row for row in own.rows if row.cause == late.cause == LateCause.BACKWARD]
        excess_s = late.excess_s * steps
    if not rows:
        return late
    if excess_s >= EXPLAINS * late_s and rows[0].cause in _LOADS:
        return _because(late, LateCause.LOADER, _words(rows[0]), excess_s, steps)
    if excess_s >= EXPLAINS * late_s and late.cause == LateCause.UNKNOWN:
        return _because(late, LateCause.LINE, _words(rows[0]), excess_s, steps)
    return replace(late, row=_words(rows[0]), row_s=excess_s)


def _because(late: LateRank, cause: LateCause, row: str, row_s: float, steps: int) -> LateRank:
    return replace(late, cause=cause, excess_s=row_s / steps, row=row, row_s=row_s)


def _collected_s(job: JobReport, late: int) -> float:
    """Return the seconds of a step that garbage collection takes beyond the others: most of the
    whole process are of its imports.
    """
    own = sum(rank.gc_s for rank in job.ranks if rank.rank == late)
    return own - median(rank.gc_s for rank in job.ranks if rank.rank != late)


def _stolen_s(own: Any, others: list[Any]) -> float:
    """Return the seconds that a rank was kept from its CPU beyond what the others are for each
    second that they run: who computes more is kept from it more, too. None where it runs more.
    """
    kept_s, ran_s = _scheduled(own)
    known = [_scheduled(each) for each in others]
    usual_s = median(kept / max(ran, 1e-9) for kept, ran in known) * ran_s
    longer_s = ran_s - median(ran for _, ran in known)
    return kept_s - usual_s if kept_s - usual_s > longer_s else 0.0


def _scheduled(bill: Any) -> tuple[float, float]:
    """Return the seconds that a process was kept from its CPU, and those that it ran."""
    kept_s = sum(row.seconds for row in bill.rows if row.cause == _PREEMPTED)
    ran_s = sum(row.seconds - row.waited_s for row in bill.rows if row.cause != _PREEMPTED)
    return kept_s, ran_s


def _taken(bill: Any) -> dict[_Key, float]:
    """Return the seconds of rows; all that a function calls in packages is one."""
    found: dict[_Key, float] = defaultdict(float)
    for row in bill.rows:
        if row.cause not in _NOT_OF_STEPS:
            found[_key(row)] += row.seconds
    return found


def _key(row: Any) -> _Key:
    return row.cause, row.of if row.cause else "", row.file, row.function


def _words(row: Any) -> str:
    """Return the cause and the line of a row."""
    words = f"{row.cause or row.of}".strip()
    if not row.file:
        return words
    line = f":{row.lines[0]}" if row.lines else ""
    place = f"{PurePath(row.file).name}{line} {row.function}".strip()
    return f"{words} at {place}" if words else place
