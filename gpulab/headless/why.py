"""`--why`: where the time of recordings of torch's profiler went, and of other profilers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import msgspec

from gpulab.core.statuses import ExitCode
from gpulab.features import modules, part
from gpulab.features.bill.trace import TraceBill, bill_of, bill_of_summary
from gpulab.features.bill.trace_changes import TraceChange, changes_of, changes_table
from gpulab.features.bill.trace_ranks import Collectives, RankWaits, collectives_of, waits_of
from gpulab.features.bill.trace_view import trace_bills
from gpulab.headless.from_trace import opened
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options, UsageError
from gpulab.traces.recording import Recording
from gpulab.traces.stream import trace_events, whole
from gpulab.traces.trace import read_any


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The bills of recordings, what each rank waits for the others, and what of two differs."""

    schema: str = "gpulab.why/1"
    bills: list[TraceBill]
    ranks: list[RankWaits]
    changes: list[TraceChange] = []
    counters: list[Any] = []
    """Kernels of files of Nsight Compute, as `gpulab.features.counters.reading` has them."""


_ENDINGS = (".json", ".json.gz")
"""Of torch's profiler. The module `why` of a feature has those that it reads."""
_TWO = 2
_CYCLE = re.compile(r"\.\d{13,}(?=\.pt\.trace\.json)")
"""When tensorboard_trace_handler wrote a file, after the name of its worker."""


def why(names: Sequence[str], options: Options) -> int:
    """Print the bill of each recording, of a folder that of each in it. What of a file cannot be
    read is said; UsageError where nothing of any can be.
    """
    bills: list[TraceBill] = []
    collectives: list[Collectives] = []
    counted = []
    problems = []
    for path in _files(names):
        try:
            for recording in _read(path):
                if recording.counted is not None:
                    counted.append(recording.counted)
                    continue
                bills.append(_bill(recording))
                collectives.append(collectives_of(recording.trace) if recording.trace else {})
        except UsageError as error:
            problems.append(str(error))
    if not bills and not counted:
        ends = dict.fromkeys([*_ENDINGS, *(each for of in modules("why") for each in of.ENDINGS)])
        nothing = f"--why: nothing to read there ({', '.join(ends)})"
        raise UsageError("\n".join(problems) or nothing)
    ranks = waits_of(*_processes(bills, collectives))
    changes = changes_of(bills[0], bills[1]) if len(names) == len(bills) == _TWO else []
    if options.json:
        write_json(Why(bills=bills, ranks=ranks, changes=changes, counters=counted), options.json)
    if not options.json_on_stdout:
        terminal = open_terminal(ascii_only=options.ascii)
        if bills:
            terminal.show(trace_bills(bills, ranks))
        if len(names) == len(bills) == _TWO:
            terminal.show(changes_table(bills, changes))
        if counted:
            terminal.show(part("counters.view:counted_files", counted))
        for problem in problems:
            terminal.say(problem)
    return ExitCode.MEASURED


def _processes(
    bills: Sequence[TraceBill], collectives: Sequence[Collectives]
) -> tuple[list[str], list[Collectives]]:
    """Return the collectives of each process: a schedule of torch's writes a file a cycle."""
    merged: dict[tuple[str, int], Collectives] = {}
    for number, (bill, own) in enumerate(zip(bills, collectives, strict=True)):
        name, cycles = _CYCLE.subn("", bill.file)
        process = name, 0 if cycles else number
        kept = merged.get(process, {})
        merged[process] = {key: kept.get(key, []) + own.get(key, []) for key in {**kept, **own}}
    return [name for name, _ in merged], list(merged.values())


def _files(names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            of_torch = {file for file in path.iterdir() if file.name.endswith(_ENDINGS)}
            yield from sorted(of_torch.union(*(module.files_in(path) for module in modules("why"))))
        else:
            yield path


def _bill(recording: Recording) -> TraceBill:
    if recording.trace is None:
        return bill_of_summary(recording.name, recording.sums or {}, recording.note)
    return bill_of(recording.name, recording.trace, recording.note)


def _read(path: Path) -> list[Recording]:
    """Return what can be read of a file, and why not all of it. UsageError."""
    with opened("--why", path) as text:
        for module in modules("why"):
            recordings: list[Recording] | None = module.read(path, text)
            if recordings is not None:
                return recordings
        return [_read_trace(path.name, text)]


def _read_trace(name: str, text: TextIO) -> Recording:
    events, problem = whole(trace_events(text))
    trace = read_any(events)
    if problem:  # marks of steps reach beyond what was written of them
        written = [
            *trace.device,
            *(event for each in trace.operations.values() for event in each),
        ]
        end = max((event.end for event in written), default=trace.window[1])
        trace = replace(trace, window=(trace.window[0], min(end, trace.window[1])))
    return Recording(name, trace, problem)
