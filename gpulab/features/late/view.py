"""The ranks of a program side by side: how late each comes, and what it did before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from gpulab.core.units import plural, seconds
from gpulab.draw.blocks import Group, Table, Text, columns_table
from gpulab.features.late.analysis import SLOWED
from gpulab.features.late.report import collective_words
from gpulab.features.late.result import JobRank, JobReport
from gpulab.report.report import RunReport

MOST_RANKS = 16
_LEAST_S, _LEAST = 5e-7, 0.02
"""Seconds, and the share of a step of some rank, below which there is nothing to show."""


@dataclass(frozen=True)
class Column:
    """A head, and what stands below it for a rank: seconds, or words that are empty where it is not
    known.
    """

    head: str
    seconds: Callable[[JobRank], float | None] | None = None
    words: Callable[[JobRank], str] = lambda _: ""

    def text(self, rank: JobRank) -> str:
        if self.seconds is None:
            return self.words(rank)
        value = self.seconds(rank)
        if value is None:
            return ""
        return seconds(value) if value >= _LEAST_S else "-"

    def says(self, job: JobReport) -> bool:
        """Return whether it takes a part of the step, or is known."""
        if self.seconds is None:
            return any(self.words(rank) for rank in job.ranks)
        values = (self.seconds(rank) or 0.0 for rank in job.ranks)
        return max(values, default=0.0) >= _LEAST * (job.step_s or 0.0)


def _clock(rank: JobRank) -> str:
    words = "" if rank.clock is None else f"{rank.clock:.0%}"
    return f"{words} T" if rank.slowed and rank.slowed >= SLOWED else words


COLUMNS = (
    Column("late", attrgetter("late_s")),
    Column("last", words=lambda rank: f"{rank.last:.0%}"),
    Column("loader", attrgetter("loader_s")),
    Column("forward", attrgetter("forward_s")),
    Column("backward", attrgetter("backward_s")),
    Column("optimizer", attrgetter("optimizer_s")),
    Column("GC", attrgetter("gc_s")),
    Column("other", attrgetter("other_s")),
    Column("no CPU", attrgetter("delay_s")),
    Column("clock", words=_clock),
    Column("host", words=attrgetter("host")),
)
"""T: heat or hardware slowed the clock."""


def job_of(report: RunReport) -> JobReport | None:
    """None where no program was followed, or it is of one process."""
    program = report.get("program")
    return program.ranks if program else None


def job_ranks(report: RunReport) -> Group | None:
    """None of a program without collectives of several ranks."""
    job = job_of(report)
    if job is None or not job.ranks:
        return None
    parts: list[Table | Text] = [_table(job)]
    if (line := most_waiting(job)) is not None:
        parts.append(Text(line))
    return Group(*parts)


def _table(job: JobReport) -> Table:
    shown = columns_of(job)
    table = columns_table()
    table.add_column("rank", no_wrap=True)
    for column in shown:
        table.add_column(column.head, justify="right", no_wrap=True)
    for rank in listed(job, MOST_RANKS):
        style = "bold" if job.late is not None and rank.rank == job.late.rank else ""
        table.add_row(str(rank.rank), *(column.text(rank) for column in shown), style=style)
    if len(job.ranks) > MOST_RANKS:
        table.add_row(f"and {len(job.ranks) - MOST_RANKS} more")
    return table


def columns_of(job: JobReport) -> list[Column]:
    """Those that say something of this job; hosts where there are several."""
    hosts = {rank.host for rank in job.ranks}
    used = [column for column in COLUMNS if column.says(job)]
    return [column for column in used if column.head != "host" or len(hosts) > 1]


def listed(job: JobReport, most: int) -> list[JobRank]:
    """The latest ones of many, in the order of their ranks."""
    latest = sorted(job.ranks, key=lambda rank: -rank.late_s)[:most]
    return sorted(latest, key=lambda rank: rank.rank)


def most_waiting(job: JobReport) -> str | None:
    """The collective that is waited for most, in words."""
    if not job.collectives:
        return None
    first = job.collectives[0]
    words = f"most waiting: {seconds(first.wait_s)} of a step in {collective_words(first)}"
    if first.nth > 1:
        words += f", number {first.nth} in the step"
    return f"{words}, rank {first.last_rank} last; {plural(job.steps, 'step')} compared"
