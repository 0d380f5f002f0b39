"""Every line of the project that needs a CUDA device, in one command; ends with one table of what
holds.

    python benchmarks/device/verify.py [FOLDER] [--lines a,b,c] [--budget-s 1200] [--device cuda:0]

Lines run in their order of importance, each in a process of its own and no longer than its limit. A
row is printed and kept in FOLDER (./verify by default; rows.jsonl, run files, JSON) as soon as it
is known, so that a call that is cut off keeps what it has; what the budget leaves no time for is a
row too. `--list` names the lines.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
import device_lines
import kernel_lines
import lesson_lines
import msgspec
import rank_lines
import trust_lines
from judging import Judgement, Row, failed, table
from lesson_lines import Place

CPU = "cpu"
_LEAST_S = 10.0
"""With less than this left no line is begun."""
_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Line:
    """A function that yields rows, its limit in seconds, whether it says something on a CPU too,
    and its part.
    """

    function: object
    limit_s: float
    on_cpu: bool = False
    part: int | None = None

    @property
    def name(self):
        name = self.function.__name__
        return name if self.part is None else f"{name}_{self.part + 1}"

    def rows(self, place):
        return self.function(place) if self.part is None else self.function(place, self.part)


LINES = {
    line.name: line
    for line in (
        Line(device_lines.doctor, 60),
        Line(trust_lines.side_stream, 60),
        Line(trust_lines.stages, 90, on_cpu=True),
        Line(trust_lines.same_against_same, 150, on_cpu=True),
        Line(trust_lines.interleaved, 60, on_cpu=True),
        Line(trust_lines.power_cap, 120),
        Line(trust_lines.cross_check, 150, on_cpu=True),
        Line(trust_lines.goodput, 240),
        Line(device_lines.counters, 90),
        Line(trust_lines.variance, 300, on_cpu=True),
        Line(lesson_lines.ceilings, 150),
        Line(lesson_lines.roofline, 180),
        Line(device_lines.phases, 60),
        Line(device_lines.below_100_ms, 60),
        Line(device_lines.unprivileged, 60),
        Line(lesson_lines.memory, 240),
        Line(device_lines.tests, 400),
        Line(kernel_lines.kernels, 590),
        Line(kernel_lines.triton, 500),
        Line(kernel_lines.dram_bytes, 200),
        Line(kernel_lines.sanitizer, 200),
        Line(kernel_lines.occupancy, 60),
        Line(lesson_lines.partition, 400),
        *(Line(lesson_lines.library, 400, part=part) for part in range(lesson_lines.PARTS)),
        Line(rank_lines.collectives, 590),
        *(Line(rank_lines.rank_lessons, 590, part=part) for part in range(rank_lines.PARTS)),
    )
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("verify"))
    parser.add_argument("--lines", type=lambda text: text.split(","), default=list(LINES))
    parser.add_argument("--budget-s", type=float, default=1200.0)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--list", action="store_true", help="name the lines and their limits")
    parser.add_argument("--within", metavar="LINE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.lines) - LINES.keys():
        parser.error(f"no such line: {', '.join(sorted(unknown))}; --list names them")
    if options.list:
        print(*(f"{line.name:20} {line.limit_s:4.0f} s" for line in LINES.values()), sep="\n")
        return 0
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.within:
        run_line(LINES[options.within], Place(options.folder, options.device))
        return 0
    rows = run_lines([LINES[name] for name in options.lines], options)
    print("", *table(rows), sep="\n", flush=True)
    return bool(failed(rows))


def run_lines(lines, options):
    """Each line in a process of its own; all rows."""
    ends, rows = time.monotonic() + options.budget_s, []
    file = options.folder / "rows.jsonl"
    for line in lines:
        before, left_s = len(rows_of(file)), ends - time.monotonic()
        if options.device == CPU and not line.on_cpu:
            keep(file, Row(line.name, "a GPU", "none here", Judgement.NOT_RUN, line.name))
        elif left_s < _LEAST_S:
            spent = f"the budget of {options.budget_s:.0f} s is spent"
            keep(file, Row(line.name, "a row", spent, Judgement.NOT_RUN, line.name))
        else:
            within_limit(line, options, left_s)
        rows += rows_of(file)[before:]
    return rows


def within_limit(line, options, left_s):
    """Run a line, and end it with everything that it started when its time is over."""
    command = [sys.executable, str(Path(__file__).resolve()), str(options.folder)]
    command += ["--device", options.device, "--within", line.name]
    limit_s = min(line.limit_s, left_s)
    started = time.monotonic()
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        end(process)
    if code != 0:
        keep(options.folder / "rows.jsonl", no_end(line, code, left_s))
    print(f"[{line.name}: {time.monotonic() - started:.0f} s]", flush=True)


def no_end(line, code, left_s):
    """The row of a line that failed with this exit code, or, at None, was cut off: by its own
    limit, which is its failure, or by what the budget had left for it.
    """
    if code is not None:
        return Row(line.name, "an end", f"exit code {code}", Judgement.NO, line.name)
    if left_s < line.limit_s:
        text = f"cut off by the budget after {left_s:.0f} s of {line.limit_s:.0f} s"
        return Row(line.name, "an end", text, Judgement.NOT_RUN, line.name)
    text = f"cut off after {line.limit_s:.0f} s"
    return Row(line.name, "an end", text, Judgement.NO, line.name)


def end(process):
    """Its whole group: a worker whose session is gone ends by itself."""
    for name in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, name)
        except ProcessLookupError:
            break
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def run_line(line, place):
    """In the line's own process: print and keep each row as it comes."""
    try:
        for entry in line.rows(place):
            keep(place.folder / "rows.jsonl", msgspec.structs.replace(entry, line=line.name))
    except Exception as error:
        text = f"{type(error).__name__}: {error}"[:100]
        keep(
            place.folder / "rows.jsonl",
            Row(line.name, "no exception", text, Judgement.NO, line.name),
        )


def keep(file, entry):
    print(f"{entry.title:52} {entry.expected:30} {entry.measured:52} {entry.judgement}", flush=True)
    with file.open("ab") as rows:
        rows.write(msgspec.json.encode(entry) + b"\n")


def rows_of(file):
    """Every row that was kept so far."""
    return (
        [msgspec.json.decode(line, type=Row) for line in file.read_bytes().splitlines()]
        if file.exists()
        else []
    )


if __name__ == "__main__":
    sys.exit(main())
