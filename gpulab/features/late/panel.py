"""Ranks of a program under way: who is late, and who did not come."""

from __future__ import annotations

from gpulab.core.units import seconds
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows
from gpulab.features.late.report import collective_words
from gpulab.features.late.result import MissingRank
from gpulab.features.late.view import cells_of, is_late, job_of, most_waiting
from gpulab.report.live import LiveReport

_RANK, _CELLS = 5, 10
_FEWEST, _RANKS, _STACK = 3, 8, 3


def _heading(run: LiveReport) -> tuple[str, str]:
    job = job_of(run.report)
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
    if job_of(run.report) is None and ranks < 2:
        return Rows(0, 0, 0)
    return Rows(_FEWEST, 2 + min(_RANKS, ranks), 2 + ranks + _STACK)


def _draw(run: LiveReport, area: Area) -> None:
    """The rank that did not come, the table, and the collective with most waiting."""
    job = job_of(run.report)
    if job is None:
        return area.put(0, 0, "no step of all ranks compared so far", "dim")
    top = _draw_missing(job.missing, area) if job.missing else 0
    heads, *ranks = cells_of(job, max(0, area.height - top - 2)) if job.ranks else [[]]
    for row, cells in enumerate([heads, *ranks], start=top):
        style = "dim" if cells is heads else "bold" if is_late(job, cells) else ""
        for place, cell in enumerate(cells[: 1 + max(1, (area.width - _RANK) // _CELLS)]):
            start = _RANK + (place - 1) * _CELLS if place else 0
            area.put(row, start, f"{cell:>{_CELLS - 1}}" if place else cell, style)
    if (line := most_waiting(job)) is not None:
        area.put(min(area.height - 1, top + 1 + len(ranks)), 0, line)
    return None


def _draw_missing(missing: MissingRank, area: Area) -> int:
    """Return the rows that it takes."""
    words = f"rank {missing.rank} has not come to {collective_words(missing)}"
    area.put(0, 0, f"{words} for {seconds(missing.waiting_s)}", "bold")
    stack = missing.stack[:_STACK] or ["it does not answer"]
    for row, line in enumerate(stack, start=1):
        area.put(row, 2, line)
    return 1 + len(stack)


_ABOUT = (
    "How much later than the median of the others each rank comes in the steps in which it is "
    "last, as seconds of a step; the share of these steps; and what it does in a step, without "
    "waiting."
)
LATE = Panel("ranks", _heading, _rows, _draw, _ABOUT)
"""The ranks of a program side by side: how late each comes, and what it did before."""
