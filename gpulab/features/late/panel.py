"""Ranks of a program under way: who is late, and who did not come."""

from __future__ import annotations

from gpulab.core.units import seconds
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows
from gpulab.features.late.report import collective_words
from gpulab.features.late.result import JobReport
from gpulab.features.late.view import columns_of, job_of, listed, most_waiting
from gpulab.report.live import LiveReport

_RANK, _CELLS = 5, 10
_FEWEST, _RANKS, _STACK = 3, 8, 3


def _job(run: LiveReport) -> JobReport | None:
    return job_of(run.report)


def _heading(run: LiveReport) -> tuple[str, str]:
    job = _job(run)
    if job is None:
        return "Ranks", ""
    if job.late is not None:
        return "Ranks", f"rank {job.late.rank} late by {job.late.share:.0%}"
    return "Ranks", f"{len(job.ranks)}"


def _rows(run: LiveReport, width: int) -> Rows:
    """None without several ranks."""
    program = run.report.get("program")
    processes = program.processes if program else []
    ranks = sum(process.rank is not None for process in processes)
    if _job(run) is None and ranks < 2:
        return Rows(0, 0, 0)
    return Rows(_FEWEST, 2 + min(_RANKS, ranks), 2 + ranks + _STACK)


def _draw(run: LiveReport, area: Area) -> None:
    job = _job(run)
    if job is None:
        return area.put(0, 0, "no step of all ranks compared so far", "dim")
    row = 0
    if (missing := job.missing) is not None:
        words = f"rank {missing.rank} has not come to {collective_words(missing)}"
        area.put(0, 0, f"{words} for {seconds(missing.waiting_s)}", "bold")
        stack = missing.stack or ["it does not answer"]
        for row, line in enumerate(stack[:_STACK], start=1):
            area.put(row, 2, line)
        row += 1
    if not job.ranks:
        return None
    _draw_ranks(job, area, row)
    return None


def _draw_ranks(job: JobReport, area: Area, top: int) -> None:
    """The table, and below it the collective with most waiting."""
    columns = columns_of(job)[: max(1, (area.width - _RANK) // _CELLS)]
    area.put(top, 0, "rank", "dim")
    for place, column in enumerate(columns):
        area.put(top, _RANK + place * _CELLS, f"{column.head:>{_CELLS - 1}}", "dim")
    rows = max(0, area.height - top - 2)
    for row, rank in enumerate(listed(job, rows), start=top + 1):
        style = "bold" if job.late is not None and rank.rank == job.late.rank else ""
        area.put(row, 0, str(rank.rank), style)
        for place, column in enumerate(columns):
            text = column.text(rank)
            area.put(row, _RANK + place * _CELLS, f"{text:>{_CELLS - 1}}", style)
    if (line := most_waiting(job)) is not None:
        area.put(min(area.height - 1, top + 1 + min(rows, len(job.ranks))), 0, line)


_ABOUT = (
    "How much later than the median of the others each rank comes to the collective where it is "
    "late most, the share of those to which it comes last, and what it does in a step, without "
    "waiting. T: heat or hardware slowed its clock."
)
LATE = Panel("ranks", _heading, _rows, _draw, _ABOUT)
