"""Do verdicts reproduce? Default runs of every kind of pair in fresh processes, spread over an hour
or more.

    python benchmarks/reproduce.py RESULTS.jsonl [--runs 40] [--long 12] [--core 0] [--kinds a,b] [--minutes 90]
    # the tables of what there is, at any time
    python benchmarks/reproduce.py RESULTS.jsonl --report

Each finished run appends a line to RESULTS, and another call goes on with the runs that are
missing. The kinds take turns, so that the runs of each are spread over all of the time. Two calls
with other kinds, and each with a core of its own, may share RESULTS. Runs are quiet (no profile, no
telemetry) unless `--full`.

Longer runs of twice as many processes stand among them: the even and the odd ones make two runs
that alternate in time. More `--time` makes more processes only where their start costs little:
kinds with expensive builds need a longer one.
"""

import argparse
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import monotonic, time

import msgspec
from agreement import summary
from pair_runs import (
    EXPENSIVE,
    KINDS,
    NEVER_NARROW,
    QUIET,
    comparisons_of,
    events_of,
    halves,
    pin,
    processes_of,
    run_pair,
)

DEFAULT, LONG = "default", "long"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--runs", type=int, default=40, help="default runs of each kind")
    parser.add_argument("--long", type=int, default=12, help="longer runs of each kind")
    parser.add_argument(
        "--long-time", type=float, default=40.0, help="seconds of rounds of a longer run"
    )
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="start no run after so long"
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--core", type=int, help="keep everything on one core")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[*KINDS, *EXPENSIVE])
    parser.add_argument(
        "--full",
        action="store_true",
        help="with profile and telemetry, as a run has them by default",
    )
    parser.add_argument("--report", action="store_true", help="measure nothing")
    options = parser.parse_args()
    if not options.report:
        pin(options.core)
        measure(options)
    text, held = summary(records_of(options.results))
    print(text)
    return not held


def measure(options):
    finished = [(record["kind"], record["mode"]) for record in records_of(options.results)]
    ends = monotonic() + 60 * options.minutes
    for kind, mode in schedule(options.kinds, {DEFAULT: options.runs, LONG: options.long}):
        if (kind, mode) in finished:
            finished.remove((kind, mode))
            continue
        if monotonic() >= ends:
            return
        record = measured(kind, mode, options)
        with options.results.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")
        print(
            f"{datetime.now(UTC):%H:%M:%S} {kind}, {mode}: {record['seconds']:.1f} s",
            file=sys.stderr,
        )


def schedule(kinds, counts):
    """(kind, mode) of every run: kinds in turn, and the runs of each mode spread evenly over all of
    them.
    """
    most = max(counts.values())
    for turn in range(most):
        for kind in kinds:
            for mode, count in counts.items():
                if (turn + 1) * count // most > turn * count // most:
                    yield kind, mode


def measured(kind, mode, options):
    """One run, as the line that is kept of it."""
    flags = () if options.full else QUIET
    flags = (
        (*flags, "--time", str(options.long_time), "--width", NEVER_NARROW)
        if mode == LONG
        else flags
    )
    at = time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"
        code, began = run_pair(kind, options.device, path, *flags)
        return record_of(events_of(path), kind=kind, mode=mode, at=at, code=code, began=began)


def record_of(events, *, kind, mode, at, code, began):
    comparisons = comparisons_of(events)
    return {
        "kind": kind,
        "mode": mode,
        "at": at,
        "exit_code": code,
        "seconds": events[-1].t - began,
        "comparisons": comparisons,
        "processes": {
            name: [
                process_median(process, (name, entry["against"]))
                for process in processes_of(events)
            ]
            for name, entry in comparisons.items()
        },
        "halves": [comparisons_of(half) for half in halves(events)] if mode == LONG else [],
    }


def process_median(process, key):
    """The median of the medians of a process's epochs; None where it has no such pair."""
    medians = [median(values) for epoch in process if (values := epoch.values(key))]
    return median(medians) if medians else None


def records_of(path):
    return (
        [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
        if path.exists()
        else []
    )


if __name__ == "__main__":
    sys.exit(main())
