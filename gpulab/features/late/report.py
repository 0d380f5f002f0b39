"""Who is late in a program of several ranks, as a part of the report."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from gpulab.core.findings import Finding
from gpulab.core.statuses import Outcome
from gpulab.features.late.analysis import analysed
from gpulab.features.late.booked import with_row
from gpulab.features.late.ended import ended_rank, events_of
from gpulab.features.late.events import Collectives
from gpulab.features.late.findings import (
    collective_is_slow,
    rank_did_not_come,
    rank_ended,
    rank_is_late,
)
from gpulab.features.late.missing import HANGS_S, missing_rank
from gpulab.features.late.result import EndedRank, JobCollective, JobReport, MissingRank
from gpulab.features.late.timelines import Timelines
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, fields_of
from gpulab.report.state import RunState

_STOPPED = (Outcome.TIMEOUT, Outcome.CANCELLED)
_EVERY_S, _STOPPED_S = 2.0, 2.0
"""Between analyses; from how long on a rank is missing in a program that was stopped."""


def _fold(state: RunState, event: Collectives) -> None:
    state.part(Timelines).add(event)


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    timelines = draft.state.part(Timelines)
    if report.get("program") is None or not timelines.ranks:
        return report
    job = _analysed(timelines, draft) or JobReport(steps=0, step_s=None)
    ended = None
    stopped = draft.state.outcome in _STOPPED
    if not draft.under_way and not stopped:
        ended = ended_rank(draft.state, job.missing)
    if not (job.steps or ended or job.missing):
        return report
    if ended or (job.missing and job.missing.waiting_s < (_STOPPED_S if stopped else HANGS_S)):
        job = replace(job, missing=None, ended=ended)
    job = with_row(job, report)
    findings = list(_findings(job))
    report = report.with_parts(program=replace(report.program, ranks=job))
    return replace(report, explanations=[*report.explanations, *findings])


def _analysed(timelines: Timelines, draft: Draft) -> JobReport | None:
    """While the program runs, anew every few seconds: it shares the CPUs with it."""
    if not draft.under_way:
        return analysed(timelines)
    at, job = timelines.shown
    if at is None or draft.now - at >= _EVERY_S:
        job = analysed(timelines, live=True)
        timelines.shown = draft.now, job
    return job


def _hang(state: RunState) -> Finding | None:
    """The rank that others wait for now, for long enough."""
    timelines = state.part(Timelines)
    missing = missing_rank(timelines) if len(timelines.ranks) > 1 else None
    if missing is None or missing.waiting_s < HANGS_S:
        return None
    pid = timelines.ranks[missing.rank].pid
    booked = events_of(state, "bill", "ProcessBooked")
    return _did_not_come(missing, ended=any(bill.ended and bill.pid == pid for bill in booked))


def _did_not_come(missing: MissingRank, *, ended: bool = False) -> Finding:
    return rank_did_not_come(
        rank=missing.rank,
        collective=collective_words(missing),
        waiting_s=missing.waiting_s,
        place=missing.stack[0] if missing.stack else "",
        ended=ended,
    )


def _findings(job: JobReport) -> Iterator[Finding]:
    if job.missing is not None:
        yield _did_not_come(job.missing)
    if (ended := job.ended) is not None:
        yield rank_ended(
            **fields_of(ended, "rank", "code", "signal", "steps", "exact", "came", "place"),
            collective=collective_words(ended),
        )
    if (late := job.late) is not None:
        numbers = fields_of(late, "rank", "late_s", "share", "last", "excess_s", "row", "row_s")
        yield rank_is_late(cause=late.cause.value, **numbers)
    if job.slow is not None and job.step_s:
        slow = job.collectives[job.slow]
        seconds = slow.transfer_s or 0.0
        yield collective_is_slow(
            collective=collective_words(slow), seconds=seconds, share=min(1.0, seconds / job.step_s)
        )


def collective_words(collective: JobCollective | MissingRank | EndedRank) -> str:
    """Its name, what it moves, and the line that calls it."""
    sizes = ", ".join("x".join(map(str, size)) for size in collective.sizes)
    words = f"{collective.name}({sizes})" if sizes else collective.name
    return f"{words} at {collective.line}" if collective.line else words


FEATURE = Feature(
    "late",
    folds={Collectives: _fold},
    add_to_run=_add_to_run,
    hang=_hang,
    views=(
        View("late.view:job_ranks", Section.RANKS),
        View("late.panel:LATE", Section.PANELS),
    ),
)
"""Ranks of one program: those of a scenario have blocks, and `ranks` is about them."""
