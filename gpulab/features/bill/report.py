"""The bill of a program: every second of a process, from its start to its end, booked once."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import sqrt
from operator import attrgetter

from msgspec.structs import replace

from gpulab.core.events import ProgramEnded
from gpulab.features.bill import result
from gpulab.features.bill.device import device_of
from gpulab.features.bill.events import (
    BookedTime,
    Compilation,
    KindOfStep,
    ProcessBooked,
    SlowRow,
    ThreadTime,
)
from gpulab.features.bill.result import (
    LEAST,
    OTHERS,
    UNBOOKED,
    BillReport,
    BillRow,
    CompiledFrame,
    Growth,
    ProcessBill,
    StepKind,
    ThreadRow,
)
from gpulab.features.bill.signs import advice_of
from gpulab.features.bill.step import VariantPart, add_steps
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import RunReport, fields_of
from gpulab.report.state import Keep

PROGRAM, WORKER, HELPER = "program", "loader worker", "helper"
START, END = "start of the interpreter", "end of the process"
COLLECTOR, PREEMPTED = "garbage collection", "preempted"
COUNTED = {START, END, UNBOOKED, COLLECTOR, PREEMPTED}
_WINDOWS, _FEWEST_STEPS, _ALIKE = 3, 8, 1.5
"""Windows in which memory grows alike, how many steps each has at least, and what is alike."""
_OF_STEPS = ("kind", "count", "p50_s", "p99_s", "longest_s", "slow", "slow_s")
_MOST_LINES = 3


def _add_to_run(draft: Draft, report: RunReport) -> RunReport:
    booked = list(_in_turn(draft.state.all(ProcessBooked)))
    if not booked:
        return add_steps(report)
    device = device_of(draft, report)
    if device is None:  # which has the operations of a step, and their lines
        report = add_steps(report)
    ends = (variant.last(ProgramEnded) for variant in draft.state.variants.values())
    ended = next((end.t for end in ends if end), None)
    groups: dict[tuple[str, int], list[ProcessBooked]] = defaultdict(list)
    counts = _that_counts(booked)
    for event in booked:
        own = event is counts or event.role == PROGRAM
        groups[f"{event.pid}" if own else event.role, event.rank].append(event)
    bills = [
        _bill(events, ended if events[0].is_root else None, program_is_over=ended is not None)
        for events in sorted(groups.values(), key=lambda events: events != [counts])
    ]
    part = BillReport(bills=bills, device=device)
    return report.with_parts(bill=replace(part, advice=advice_of(part)))


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


def _bill(
    events: Sequence[ProcessBooked], program_ended: float | None, *, program_is_over: bool
) -> ProcessBill:
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
    kept = [row for row in rows if row.seconds >= LEAST * wall_s]
    small_s = booked_s - sum(row.seconds for row in kept)
    kept.sort(key=lambda row: -row.seconds)
    unbooked_s = wall_s - booked_s
    if abs(unbooked_s) < 0.0005 * wall_s:
        small_s += unbooked_s
        unbooked_s = 0.0
    for cause, seconds in ((OTHERS, small_s), (UNBOOKED, unbooked_s)):
        if seconds:
            kept.append(BillRow(cause=cause, seconds=seconds))
    memory = events[0].memory if len(events) == 1 else []
    last = events[-1]
    faults, user_s, system_s = last.faults
    return ProcessBill(
        role=events[0].role,
        rank=events[0].rank if events[0].ranked else None,
        processes=len(events),
        wall_s=wall_s,
        rows=kept,
        sampling_s=sum(event.own_s for event in events),
        ended=program_is_over or all(event.ended for event in events),
        threads=max(event.threads for event in events),
        cores=max(event.cores for event in events),
        compiled=_compiled(events[-1].compilations),
        resident_bytes=memory[-1].resident_bytes if memory else None,
        growth=_by_step([(look.steps, look.resident_bytes) for look in memory], last.available),
        device_growth=_by_step([(look.steps, look.device_bytes) for look in memory], 0),
        steps=[*map(_kind_of_step, last.steps)] if len(events) == 1 else [],
        other_threads=_threads(last.other_threads),
        graph_s=sum(event.in_modules.graph for event in events),
        training_s=sum(event.in_modules.training for event in events),
        double_s=sum(event.in_modules.double for event in events),
        switches=last.switches,
        differentiates=any(map(_differentiates, events)),
        page_faults=faults,
        available_bytes=last.available,
        system_share=system_s / (user_s + system_s) if user_s + system_s else 0.0,
    )


def _differentiates(event: ProcessBooked) -> bool:
    trains = any(kind.kind.startswith("train") for kind in event.steps)
    return trains or any(row.cause in ("backward", "optimizer") for row in event.rows)


def _threads(found: Iterable[ThreadTime]) -> list[ThreadRow]:
    """Return a row for each thread, what ran most first."""
    rows: dict[str, ThreadRow] = {}
    for each in found:  # the longest first
        rows.setdefault(
            each.thread,
            ThreadRow(**fields_of(each, "thread", "ran_s", "main_waited_s"), row=_row(each)),
        )
    return sorted(rows.values(), key=lambda row: -row.ran_s)


def _row(sampled: SlowRow | ThreadTime) -> BillRow:
    same = fields_of(sampled, "cause", "of", "seconds", "file", "function")
    return BillRow(**same, lines=[sampled.line] if sampled.line else [])


def _kind_of_step(steps: KindOfStep) -> StepKind:
    rows = [_row(row) for row in steps.rows]
    return StepKind(**fields_of(steps, *_OF_STEPS), rows=rows)


def _by_step(looks: Sequence[tuple[int, int]], available: int) -> Growth | None:
    """Return by how much memory grows with each step, where it does alike in three windows of as
    many steps, the newest ones.
    """
    looks = [look for look in looks if look[0]]
    if not looks or looks[-1][0] < _WINDOWS * _FEWEST_STEPS:
        return None
    steps, size = looks[-1]
    whole = steps
    rates = []
    for window in range(1, _WINDOWS + 1):
        begin = whole * (1 - window / (_WINDOWS + 1))
        before = min(looks, key=lambda look: abs(look[0] - begin))
        if before[0] == steps:
            return None
        rates.append((size - before[1]) / (steps - before[0]))
        steps, size = before
    rate = sorted(rates)[_WINDOWS // 2]
    if min(rates) <= 0 or max(rates) > _ALIKE * min(rates):
        return None
    left = int(available / rate) if available else None
    return Growth(bytes_per_step=rate, steps_left=left)


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
            source=next((row.source for row in parts if row.line == most[0]), ""),
        )


def _key(row: BookedTime) -> tuple[str, str, str, str]:
    """Return what makes two rows one: all that a function calls in packages that were installed is
    one, whichever of them call which.
    """
    if row.cause == "import":
        return row.cause, row.of, "", ""
    is_standard = row.of.partition(".")[0] in sys.stdlib_module_names
    if row.of and not is_standard and row.cause in ("", "torch"):
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
