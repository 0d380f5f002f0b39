"""The bill of a program: every second of a process, from its start to its end, booked once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from operator import attrgetter

from msgspec.structs import replace

from gpulab.core.events import ProgramEnded
from gpulab.features.bill import result
from gpulab.features.bill.device import device_of
from gpulab.features.bill.events import BookedTime, Compilation, ProcessBooked
from gpulab.features.bill.result import BillReport, BillRow, CompiledFrame, ProcessBill
from gpulab.features.bill.step import VariantPart, add_steps
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport
from gpulab.report.state import Keep

PROGRAM, WORKER, HELPER = "program", "loader worker", "helper"
START, END, OTHERS = "start of the interpreter", "end of the process", "rows below 0.5 %"
UNBOOKED, COLLECTOR, PREEMPTED = "unbooked", "garbage collection", "preempted"
COUNTED = {START, END, UNBOOKED, COLLECTOR, PREEMPTED}
_LEAST = 0.005
_MOST_LINES = 3


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    report = add_steps(report)
    booked = list(_in_turn(draft.state.all(ProcessBooked)))
    if not booked:
        return report
    ends = (variant.last(ProgramEnded) for variant in draft.state.variants.values())
    ended = next((end.t for end in ends if end), None)
    groups: dict[tuple[str, int], list[ProcessBooked]] = defaultdict(list)
    counts = _that_counts(booked)
    for event in booked:
        own = event is counts or event.role == PROGRAM
        groups[f"{event.pid}" if own else event.role, event.rank].append(event)
    bills = [
        _bill(events, ended if events[0].is_root else None)
        for events in sorted(groups.values(), key=lambda events: events != [counts])
    ]
    return report.with_parts(bill=BillReport(bills=bills, device=device_of(draft, report)))


def _in_turn(events: Iterable[ProcessBooked]) -> Iterator[ProcessBooked]:
    """Yield those that are of the program. After an exec a process has its number and its start as
    before: it begins where its last bill ends.
    """
    until: dict[int, float] = {}
    for event in sorted(events, key=lambda event: event.begun):
        started = max(event.started, min(until.get(event.pid, event.started), event.begun))
        until[event.pid] = event.until
        if event.role != HELPER:
            yield replace(event, started=started)


def _that_counts(booked: Sequence[ProcessBooked]) -> ProcessBooked:
    return max(
        booked,
        key=lambda event: (
            event.ranked and event.role == PROGRAM,
            -event.rank,
            event.role == PROGRAM,
            event.until - event.started,
        ),
    )


def _bill(events: Sequence[ProcessBooked], program_ended: float | None) -> ProcessBill:
    """Return the bill of processes of one kind. `program_ended`: when the program had ended."""
    wall_s = sum(event.until - event.started for event in events)
    end_s = 0.0
    if program_ended is not None and events[0].ended:
        end_s = max(0.0, program_ended - events[0].until)
    wall_s += end_s
    rows = [*_rows(events)]
    exact = {
        START: sum(event.begun - event.started for event in events),
        COLLECTOR: sum(event.collected_s for event in events),
        PREEMPTED: sum(event.preempted_s for event in events),
        END: end_s,
    }
    rows += [BillRow(cause=cause, seconds=seconds) for cause, seconds in exact.items()]
    booked_s = sum(row.seconds for row in rows) + sum(event.other_s for event in events)
    kept = [row for row in rows if row.seconds >= _LEAST * wall_s]
    small_s = booked_s - sum(row.seconds for row in kept)
    kept.sort(key=lambda row: -row.seconds)
    for cause, seconds in ((OTHERS, small_s), (UNBOOKED, wall_s - booked_s)):
        if seconds > 0.0005 * wall_s:
            kept.append(BillRow(cause=cause, seconds=seconds))
    resident = events[0].resident if len(events) == 1 else []
    return ProcessBill(
        role=events[0].role,
        rank=events[0].rank if events[0].ranked else None,
        processes=len(events),
        wall_s=wall_s,
        rows=kept,
        sampling_s=sum(event.own_s for event in events),
        ended=all(event.ended for event in events),
        threads=max(event.threads for event in events),
        cores=max(event.cores for event in events),
        compiled=_compiled(events[-1].compilations),
        resident_bytes=resident[-1][1] if resident else None,
        growth_bytes=_growth(resident),
    )


def _growth(resident: Sequence[tuple[float, int]]) -> int | None:
    """Return by how much memory grew since half of the time, which is not half of the looks: they
    come more and more rarely.
    """
    if not resident:
        return None
    half = (resident[0][0] + resident[-1][0]) / 2
    before = [size for at, size in resident if at <= half]
    return resident[-1][1] - before[-1]


def _compiled(compilations: Sequence[Compilation]) -> list[CompiledFrame]:
    found: dict[tuple[str, str, int], list[Compilation]] = defaultdict(list)
    for each in compilations:
        found[each.function, each.file, each.line].append(each)
    frames = [
        CompiledFrame(
            function=function,
            file=file,
            line=line,
            count=len(each),
            seconds=sum(part.seconds for part in each),
            reasons=list(dict.fromkeys(part.reason for part in each if part.reason)),
        )
        for (function, file, line), each in found.items()
    ]
    return sorted(frames, key=lambda frame: -frame.seconds)


def _rows(events: Iterable[ProcessBooked]) -> Iterator[BillRow]:
    """Yield the sampled rows: a cause in a function is one, and so is an import."""
    found: dict[tuple[str, str, str, str], list[BookedTime]] = defaultdict(list)
    every_s: dict[tuple[str, str, str, str], float] = {}
    for event in events:
        gap_s = (event.until - event.begun) / max(1, event.samples)
        for row in event.rows:
            key = _key(row)
            found[key].append(row)
            every_s[key] = max(gap_s, every_s.get(key, 0.0))
    for key, parts in found.items():
        seconds = sum(row.ran_s + row.waited_s for row in parts)
        lines: dict[int, float] = defaultdict(float)
        for row in parts:
            lines[row.line] += row.ran_s + row.waited_s
        most = sorted(lines, key=lambda line: -lines[line])[:_MOST_LINES]
        first = max(parts, key=lambda row: row.ran_s + row.waited_s)
        yield BillRow(
            cause=key[0],
            of=first.of,
            seconds=seconds,
            error_s=sqrt(seconds * every_s[key]),
            waited_s=sum(row.waited_s for row in parts),
            file=first.file,
            function=first.function,
            lines=[line for line in most if line and lines[line] >= 0.1 * seconds],
        )


def _key(row: BookedTime) -> tuple[str, str, str, str]:
    """Return what makes two rows one: all that a function calls in packages is one, whichever of
    them call which.
    """
    if row.cause == "import":
        return row.cause, row.of, "", ""
    if row.of and row.cause in ("", "torch"):
        return "", "a package", row.file, row.function
    return row.cause, row.of, row.file, row.function


FEATURE = Feature(
    "bill",
    variant_part=VariantPart,
    run_part=result.RunPart,
    keeps={ProcessBooked: Keep(by=attrgetter("pid", "begun"))},
    add_to_run=_add_to_run,
    views=(
        View("bill.view:bill", Section.PROGRAM),
        View("bill.device:device", Section.PROGRAM),
        View("bill.panel:BILL", Section.PANELS),
    ),
)
