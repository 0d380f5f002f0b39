"""Runs of the pairs in `pairs/`: each in a fresh process, and what its run file holds of processes
and builds.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

from commands import GPULAB
from msgspec.structs import replace

from gpulab.core.events import Built, ProcessStarted, Samples
from gpulab.core.run_file import read_run_file
from gpulab.report.build import build_report, fold_all
from gpulab.stats.series import Epoch

FOLDER = Path(__file__).parent / "pairs"
KINDS = ("compute_bound", "cache_resident", "memory_bound", "small_ops", "allocating")
EXPENSIVE = ("compiled", "expensive_builds")
"""Kinds whose builds are expensive."""
_OF_OTHER_FILES = {"expensive_builds": ("cache_resident", "--set", "build_s=1.1")}
"""Kinds that another one's file has, with what they set there."""
BASELINE, UNLIKE = "baseline", "unlike"
LIKE = {"control": BASELINE, "twin": BASELINE, "compiled_twin": UNLIKE}
"""Variants that do what another one does, so that every difference is a false verdict."""
NEVER_NARROW = "0.001%"
"""A width that no run reaches, so that it measures for all of its time."""
QUIET = ("--profile", "off", "--telemetry", "off")


def run_pair(kind, device, run_file, *flags):
    """Measure a pair in a fresh process: its exit code, and when the command was started on the
    clock of its events.

    CalledProcessError where there was no run, since no other would come of the same command.
    """
    file, *own = _OF_OTHER_FILES.get(kind, (kind,))
    command = [*GPULAB, "--run", str(FOLDER / f"{file}.py"), *own, "--device", device]
    command += ["--output", str(run_file), *flags]
    began = monotonic()
    done = subprocess.run(
        command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if not run_file.exists():
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.returncode, began


def pin(core):
    """Keep this process, and all that it starts, on one core."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def events_of(run_file):
    return read_run_file(run_file).events


def process_of_epochs(events):
    """A function from the number of an epoch to the place, from 0, of the process that measured
    it.
    """
    firsts = sorted(event.epoch for event in events if isinstance(event, ProcessStarted))
    return lambda epoch: max(sum(first <= epoch for first in firsts) - 1, 0)


def processes_of(events):
    """Every process of a run in its order: its epochs, with seconds per item by name."""
    items = {event.variant: event.items for event in events if isinstance(event, Built)}
    rounds_of, process_of = {}, process_of_epochs(events)
    for batch in (event for event in events if isinstance(event, Samples)):
        for epoch, number, index, time_s in zip(
            batch.epoch, batch.round, batch.variant, batch.times_s, strict=True
        ):
            name = batch.names[index]
            rounds_of.setdefault(epoch, {}).setdefault(number, {})[name] = time_s / items.get(
                name, 1.0
            )
    processes = {}
    for epoch in sorted(rounds_of):
        rounds = [rounds_of[epoch][number] for number in sorted(rounds_of[epoch])]
        processes.setdefault(process_of(epoch), []).append(Epoch(rounds))
    return [processes[place] for place in sorted(processes)]


def halves(events):
    """The run twice, of processes that alternate in time: those of its even fork servers, and those
    of its odd ones.

    Processes that were forked after the same import of torch have its place in memory in common.
    """
    started = [event for event in events if isinstance(event, ProcessStarted)]
    fork_servers = list(dict.fromkeys(event.fork_server for event in started))
    process_of = process_of_epochs(events)
    return [
        [
            _half(
                event,
                {place for place, process in enumerate(started) if process.fork_server in chosen},
                process_of,
            )
            for event in events
            if not isinstance(event, ProcessStarted) or event.fork_server in chosen
        ]
        for chosen in (fork_servers[0::2], fork_servers[1::2])
    ]


def _half(event, places, process_of):
    """The event; of samples those of the processes in these places."""
    if not isinstance(event, Samples):
        return event
    rows = [place for place, epoch in enumerate(event.epoch) if process_of(epoch) in places]
    values = {}
    for name in event.__struct_fields__:
        column = getattr(event, name)
        if isinstance(column, list) and column:
            values[name] = [column[row] for row in rows]
    return replace(event, **values)


def comparisons_of(events):
    """What the lab makes of these events: by variant its comparison, the control's too, as data."""
    report = build_report(fold_all(events))
    control = {} if report.control is None else {"control": _entry(report.control, BASELINE)}
    compared = {
        entry.variant: _entry(entry, entry.against) for entry in reversed(report.comparisons)
    }
    return control | compared


def _ends(speedup):
    if speedup is None:
        return {"speedup": None, "low": None, "high": None}
    return {"speedup": speedup.value, "low": speedup.low, "high": speedup.high}


def _entry(comparison, against):
    sustained = getattr(comparison, "sustained", None)
    return {
        "sustained": sustained and _ends(sustained.speedup),
        "against": against,
        **_ends(comparison.speedup),
        "verdict": comparison.verdict.value,
    }
