"""`--why`: where the time of recordings of torch's profiler went, and of other profilers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import msgspec

from gpulab.core.statuses import ExitCode
from gpulab.core.text import one_line
from gpulab.features import modules, part, present
from gpulab.features.bill.trace import TraceBill, bill_of, bill_of_summary
from gpulab.features.bill.trace_changes import TraceChange, changes_of, changes_table
from gpulab.features.bill.trace_ranks import Collectives, RankWaits, collectives_of, waits_of
from gpulab.features.bill.trace_view import trace_bills
from gpulab.headless.from_trace import opened
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options, UsageError
from gpulab.traces.recording import Recording
from gpulab.traces.stream import raw_events, trace_events
from gpulab.traces.trace import read_any


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The bills of recordings, what each rank waits for the others, and what of two differs."""

    schema: str = "gpulab.why/1"
    bills: list[TraceBill]
    ranks: list[RankWaits]
    changes: list[TraceChange] = []
    counters: list[Any] = []
    """Kernels of files of Nsight Compute, as `gpulab.features.counters.reading` has them."""


_COUNTERS = present("counters.reading")
_ENDINGS = (".json", ".json.gz", ".sqlite", ".db", "kernel_trace.csv", "cuda_gpu_trace.csv")
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
            if _COUNTERS and _COUNTERS.is_counters(path):
                counted.append(_COUNTERS.read(path))
                continue
            for recording in _read(path):
                bills.append(_bill(recording))
                collectives.append(collectives_of(recording.trace) if recording.trace else {})
        except UsageError as error:
            problems.append(str(error))
        except (OSError, ValueError) as error:  # of a file of counters
            problems.append(f"--why {path}: {one_line(str(error))}")
    if not bills and not counted:
        ends = (*_ENDINGS, *(_COUNTERS.ENDINGS if _COUNTERS else ()))
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
    bills: Sequence[TraceBill], found: Sequence[Collectives]
) -> tuple[list[str], list[Collectives]]:
    """Return the collectives of each process: a schedule of torch's writes a file a cycle."""
    merged: dict[tuple[str, int], Collectives] = {}
    for number, (bill, own) in enumerate(zip(bills, found, strict=True)):
        name, cycles = _CYCLE.subn("", bill.file)
        process = name, 0 if cycles else number
        kept = merged.get(process, {})
        merged[process] = {key: kept.get(key, []) + own.get(key, []) for key in {**kept, **own}}
    return [name for name, _ in merged], list(merged.values())


def _files(names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if _is_recording(each))
            yield from part("jax.reading:recordings_in", path) or ()
        else:
            yield path


def _is_recording(file: Path) -> bool:
    """Return whether a file of a folder is read; tables beside a timeline are read with it."""
    if file.name.endswith(_ENDINGS):
        return True
    if _COUNTERS is None or not file.name.endswith(_COUNTERS.ENDINGS):
        return False
    found: bool = _COUNTERS.is_counters(file)
    return found


def _bill(recording: Recording) -> TraceBill:
    if recording.trace is None:
        return bill_of_summary(recording.name, recording.sums or {}, recording.note)
    return bill_of(recording.name, recording.trace, recording.note)


def _read(path: Path) -> list[Recording]:
    """Return what can be read of a file, and why not all of it. UsageError."""
    jax = present("jax.reading")
    if path.name.endswith(".xplane.pb"):
        raise UsageError(f"--why {path}: what is read is JAX's *.trace.json.gz beside it")
    with opened("--why", path) as text:
        for module in modules("why"):
            recordings: list[Recording] | None = module.read(path, text.buffer)
            if recordings is not None:
                return recordings
        if jax is not None and jax.is_its(text):
            events, problem = _whole(raw_events(text))
            trace, note = jax.read(events)
            return [Recording(path.name, trace, problem or note)]
        return [_read_trace(path.name, text)]


def _read_trace(name: str, text: TextIO) -> Recording:
    events, problem = _whole(trace_events(text))
    trace = read_any(events)
    if problem:  # marks of steps reach beyond what was written of them
        written = [
            *trace.device,
            *(event for each in trace.operations.values() for event in each),
        ]
        end = max((event.end for event in written), default=trace.window[1])
        trace = replace(trace, window=(trace.window[0], min(end, trace.window[1])))
    return Recording(name, trace, problem)


def _whole(entries: Iterable[object]) -> tuple[list[object], str]:
    """Return the events that are whole, and what ended them early. ValueError where none is."""
    events = []
    try:
        for event in entries:
            events.append(event)
    except ValueError as error:
        if not events:
            raise
        return events, f"read in part: {one_line(str(error))}"
    return events, ""
