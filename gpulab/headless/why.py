"""`--why`: where the time of recordings of torch's profiler went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from gpulab.core.statuses import ExitCode
from gpulab.core.text import one_line
from gpulab.features import part, present
from gpulab.features.bill.trace import TraceBill, bill_of
from gpulab.features.bill.trace_ranks import Collectives, RankWaits, collectives_of, waits_of
from gpulab.features.bill.trace_view import trace_bills
from gpulab.features.from_trace.stream import trace_events
from gpulab.headless.from_trace import opened
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options, UsageError
from gpulab.traces.trace import Trace, read_any


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The bills of recordings, and what each rank waits for the others."""

    schema: str = "gpulab.why/1"
    bills: list[TraceBill]
    ranks: list[RankWaits]
    counters: list[Any] = []
    """Kernels of files of Nsight Compute, as `gpulab.features.counters.reading` has them."""


_COUNTERS = present("counters.reading")
_ENDINGS = (".json", ".json.gz", *(_COUNTERS.ENDINGS if _COUNTERS else ()))


def why(names: Sequence[str], options: Options) -> int:
    """Print the bill of each recording, of a folder that of each in it. What of a file cannot be
    read is said; UsageError where nothing of any can be.
    """
    bills: list[TraceBill] = []
    found: list[Collectives] = []
    counted = []
    problems = []
    for path in _files(names):
        try:
            if _COUNTERS and _COUNTERS.is_counters(path):
                counted.append(_COUNTERS.read(path))
                continue
            trace, problem = _read(path)
            bills.append(bill_of(path.name, trace, problem))
            found.append(collectives_of(trace))
        except UsageError as error:
            problems.append(str(error))
        except (OSError, ValueError) as error:  # of a file of counters
            problems.append(f"--why {path}: {one_line(str(error))}")
    if not bills and not counted:
        nothing = f"--why: nothing to read there ({', '.join(_ENDINGS)})"
        raise UsageError("\n".join(problems) or nothing)
    ranks = waits_of([bill.file for bill in bills], found)
    if options.json:
        write_json(Why(bills=bills, ranks=ranks, counters=counted), options.json)
    if not options.json_on_stdout:
        terminal = open_terminal(ascii_only=options.ascii)
        if bills:
            terminal.show(trace_bills(bills, ranks))
        if counted:
            terminal.show(part("counters.view:counted_files", counted))
        for problem in problems:
            terminal.say(problem)
    return ExitCode.MEASURED


def _files(names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.name.endswith(_ENDINGS))
        else:
            yield path


def _read(path: Path) -> tuple[Trace, str]:
    """Return what can be read of a file, and why not all of it. UsageError."""
    events = []
    problem = ""
    with opened("--why", path) as text:
        try:
            for event in trace_events(text):
                events.append(event)
        except ValueError as error:
            if not events:
                raise
            problem = one_line(str(error))
        trace = read_any(events)
        if problem:  # marks of steps reach beyond what was written of them
            written = [
                *trace.device,
                *(event for each in trace.operations.values() for event in each),
            ]
            end = max((event.end for event in written), default=trace.window[1])
            trace = replace(trace, window=(trace.window[0], min(end, trace.window[1])))
        return trace, problem
