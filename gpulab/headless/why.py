"""`--why`: where the time of recordings of torch's profiler went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from gpulab.core.statuses import ExitCode
from gpulab.core.text import one_line
from gpulab.features import part, present
from gpulab.features.bill.trace import TraceBill, bill_of
from gpulab.features.bill.trace_ranks import Collectives, RankWaits, collectives_of, waits_of
from gpulab.features.bill.trace_view import trace_bills
from gpulab.features.from_trace.stream import raw_events, trace_events
from gpulab.headless.from_trace import opened
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options, UsageError
from gpulab.traces.trace import Trace, read_any


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The bills of recordings, and what each rank waits for the others."""

    schema: str = "gpulab.why/1"
    bills: list[TraceBill]
    ranks: list[RankWaits]


_ENDINGS = (".json", ".json.gz")


def why(names: Sequence[str], options: Options) -> int:
    """Print the bill of each recording, of a folder that of each in it. What of a file cannot be
    read is said; UsageError where nothing of any can be.
    """
    bills: list[TraceBill] = []
    found: list[Collectives] = []
    problems = []
    for path in _files(names):
        try:
            trace, problem = _read(path)
            bills.append(bill_of(path.name, trace, problem))
            found.append(collectives_of(trace))
        except UsageError as error:
            problems.append(str(error))
    if not bills:
        raise UsageError("\n".join(problems) or "--why: no trace (.json, .json.gz) there")
    ranks = waits_of([bill.file for bill in bills], found)
    if options.json:
        write_json(Why(bills=bills, ranks=ranks), options.json)
    if not options.json_on_stdout:
        terminal = open_terminal(ascii_only=options.ascii)
        terminal.show(trace_bills(bills, ranks))
        for problem in problems:
            terminal.say(problem)
    return ExitCode.MEASURED


def _files(names: Sequence[str]) -> Iterator[Path]:
    for name in names:
        path = Path(name)
        if path.is_dir():
            yield from sorted(each for each in path.iterdir() if each.name.endswith(_ENDINGS))
            yield from part("jax.reading:recordings_in", path) or ()
        else:
            yield path


def _read(path: Path) -> tuple[Trace, str]:
    """Return what can be read of a file, and why not all of it. UsageError."""
    jax = present("jax.reading")
    with opened("--why", path) as text:
        if jax is not None and jax.is_its(text):
            events, problem = _whole(raw_events(text))
            trace, note = jax.read(events)
            return trace, problem or note
        events, problem = _whole(trace_events(text))
        trace = read_any(events)
        if problem:  # marks of steps reach beyond what was written of them
            written = [
                *trace.device,
                *(event for each in trace.operations.values() for event in each),
            ]
            end = max((event.end for event in written), default=trace.window[1])
            trace = replace(trace, window=(trace.window[0], min(end, trace.window[1])))
        return trace, problem


def _whole(entries: Iterable[object]) -> tuple[list[object], str]:
    """Return the events that are whole, and what ended them early. ValueError where none is."""
    events = []
    try:
        for event in entries:
            events.append(event)
    except ValueError as error:
        if not events:
            raise
        return events, one_line(str(error))
    return events, ""
