"""Ranks of a program side by side: how late each comes, and what it did before."""

from __future__ import annotations

from gpulab.core.units import plural, seconds
from gpulab.draw.blocks import Group, Table, Text, columns_table
from gpulab.features.late.parts import PARTS
from gpulab.features.late.report import collective_words
from gpulab.features.late.result import JobRank, JobReport
from gpulab.report.report import RunReport

MOST_RANKS = 16
_LEAST_S, _LEAST = 5e-7, 0.02
"""Seconds, and the share of a step of some rank, below which there is nothing to show."""


def job_of(report: RunReport) -> JobReport | None:
    """None where no program was followed, or it is of one process."""
    program = report.get("program")
    return program.ranks if program else None


def job_ranks(report: RunReport) -> Group | None:
    """None of a program without collectives of several ranks."""
    job = job_of(report)
    if job is None or not job.ranks:
        return None
    heads, *rows = cells_of(job, MOST_RANKS)
    table = columns_table()
    for head in heads:
        table.add_column(head, justify="left" if head == "rank" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row, style="bold" if is_late(job, row) else "")
    if len(job.ranks) > MOST_RANKS:
        table.add_row(f"and {len(job.ranks) - MOST_RANKS} more")
    parts: list[Table | Text] = [table]
    if (line := most_waiting(job)) is not None:
        parts.append(Text(line))
    return Group(*parts)


def cells_of(job: JobReport, most: int) -> list[list[str]]:
    """The heads, and below them the latest of many ranks, in their order: parts that take some of a
    step, and hosts where there are several.
    """
    latest = sorted(job.ranks, key=lambda rank: -rank.late_s)[:most]
    latest.sort(key=lambda rank: rank.rank)
    columns = [["rank", *(str(rank.rank) for rank in latest)]]
    for name in ("late", "last", *PARTS):
        if name == "last":
            columns.append([name, *(f"{rank.last:.0%}" for rank in latest)])
        elif max(_part(rank, name) for rank in job.ranks) >= _LEAST * (job.step_s or 0.0):
            columns.append(
                [{"gc": "GC"}.get(name, name), *(_words(_part(rank, name)) for rank in latest)]
            )
    if len({rank.host for rank in job.ranks}) > 1:
        columns.append(["host", *(rank.host for rank in latest)])
    return [list(row) for row in zip(*columns, strict=True)]


def is_late(job: JobReport, row: list[str]) -> bool:
    """Return whether a row is that of the rank that is late."""
    return job.late is not None and row[0] == str(job.late.rank)


def _part(rank: JobRank, name: str) -> float:
    value: float = getattr(rank, f"{name}_s")
    return value


def _words(value: float) -> str:
    return seconds(value) if value >= _LEAST_S else "-"


def most_waiting(job: JobReport) -> str | None:
    """The collective that is waited for most, in words."""
    if not job.collectives:
        return None
    first = job.collectives[0]
    words = f"most waiting: {seconds(first.wait_s)} of a step in {collective_words(first)}"
    if first.nth > 1:
        words += f", number {first.nth} in the step"
    return f"{words}, rank {first.last_rank} last; {plural(job.steps, 'step')} compared"
