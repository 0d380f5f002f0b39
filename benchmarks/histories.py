"""Are changes found in a history, how often wrongly, and does a long history stay quick?

    python benchmarks/histories.py steps [--histories 200] [--runs 60] [--step 0.02]
    python benchmarks/histories.py many [--runs 10000] [--scenarios 50]

`steps` makes histories of paired speedups, half of them with one step planted, and looks at each
after every run, as a user does. Found: a change is claimed, within a run of its place, by the third
run after the step. False: any change claimed at any look of a history without a step, or before the
step or away from it in one with it.

The noise is what `variance.py` and `verify.py` measured (guide, page *verdict*): standard
deviations of the ratio between runs, and of what a run knows of itself by its own interval.

`many` writes run files and their rows into a store of its own, and times `--history` (CPU seconds
of the whole process, and wall), the history screen until its list is drawn, and `--history` without
the store for a tenth of the files, which are then read again.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import perf_counter

import numpy as np
from commands import GPULAB

from gpulab.core.events import RunEnded, RunStarted, WorkerReady
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.features.history.change_points import change_points, runs_of
from gpulab.features.history.report import PastComparison, PastRun
from gpulab.session.run_files import runs_folder
from gpulab.session.store import Store

FEWEST_BEFORE = 12
"""Runs before a planted step."""
WITHIN = 3
OF_99_PERCENT = 2.576


@dataclass(frozen=True)
class Noise:
    """Standard deviations of log(speedup): between runs, and within a run, which its interval
    knows. `disturbed`: the share of runs with five times of both, and an interval that shows it.
    """

    name: str
    between: float
    within: float
    tails: str = "normal"
    disturbed: float = 0.0
    correlation: float = 0.0

    @property
    def whole(self):
        return (self.between**2 + self.within**2) ** 0.5

    def draw(self, random, count):
        """(log-ratios around 0, half-widths of their 99 % intervals)."""
        between = self._between(random, count)
        times = np.where(random.random(count) < self.disturbed, 5.0, 1.0)
        logs = times * (self.between * between + self.within * random.standard_normal(count))
        widths = OF_99_PERCENT * self.within * times * random.uniform(0.7, 1.5, count)
        return logs, widths

    def _between(self, random, count):
        if self.tails == "heavy":  # Student's t with 4 degrees
            return random.standard_t(4, count) / 2**0.5
        values = random.standard_normal(count)
        for place in range(1, count):
            fresh = (1 - self.correlation**2) ** 0.5 * values[place]
            values[place] = self.correlation * values[place - 1] + fresh
        return values


NOISES = (
    Noise("H200, memory-bound", 0.0024, 0.0012),
    Noise("H200, compute-bound", 0.0051, 0.0017),
    Noise("H200, small operations", 0.018, 0.004),
    Noise("CPU, compute-bound", 0.0008, 0.0012),
    Noise("CPU, cache-resident", 0.0065, 0.0019),
    Noise("0.3 %", 0.0027, 0.0013),
    Noise("0.4 %", 0.0036, 0.0017),
    Noise("0.3 %, heavy tails", 0.0027, 0.0013, tails="heavy"),
    Noise("0.3 %, 5 % of runs disturbed", 0.0027, 0.0013, disturbed=0.05),
    Noise("0.3 %, correlated by 0.3", 0.0027, 0.0013, correlation=0.3),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="part", required=True)
    steps = parts.add_parser("steps")
    steps.add_argument("--histories", type=int, default=200)
    steps.add_argument("--runs", type=int, default=60)
    steps.add_argument("--step", type=float, default=0.02)
    steps.add_argument("--seed", type=int, default=1)
    many = parts.add_parser("many")
    many.add_argument("--runs", type=int, default=10_000)
    many.add_argument("--scenarios", type=int, default=50)
    options = parser.parse_args()
    if options.part == "steps":
        return show_steps(options)
    return show_many(options)


def show_steps(options):
    print(
        f"{options.histories} histories of {options.runs} runs with a step of {options.step:.1%} "
        f"after {FEWEST_BEFORE} or more, and as many without; looked at after every run"
    )
    print(f"{'noise':<30} {'sd':>6} {'within 3':>9} {'within 5':>9} {'within 8':>9} {'false':>7}")
    for noise in NOISES:
        random = np.random.default_rng(options.seed)
        delays = [delay(noise, random, options) for _ in range(options.histories)]
        wrong = sum(is_claimed(noise, random, options) for _ in range(options.histories))
        shares = [np.mean([late <= most for late in delays]) for most in (WITHIN, 5, 8)]
        cells = " ".join(f"{share:>9.1%}" for share in shares)
        print(f"{noise.name:<30} {noise.whole:>6.2%} {cells} {wrong / options.histories:>7.1%}")


def delay(noise, random, options):
    """Runs after the step until it was found; infinite where it was not."""
    place = int(random.integers(FEWEST_BEFORE, options.runs - 8))
    logs, widths = noise.draw(random, options.runs)
    logs[place:] += np.log1p(options.step) * random.choice((-1, 1))
    for later in range(1, options.runs - place + 1):
        claimed = claims(logs[: place + later], widths)
        if any(abs(cut - place) <= 1 for cut in claimed):
            return later
    return float("inf")


def is_claimed(noise, random, options):
    """Whether a change was claimed at any look, where there was none."""
    logs, widths = noise.draw(random, options.runs)
    return any(claims(logs[:count], widths) for count in range(1, options.runs + 1))


def claims(logs, widths):
    logs = logs.tolist()
    intervals = [
        (np.exp(log), np.exp(log - width), np.exp(log + width))
        for log, width in zip(logs, widths, strict=False)
    ]
    return change_points(runs_of(intervals))


DEVICE = Device(kind="cuda", name="NVIDIA H100 80GB HBM3", uuid="GPU-1")
DRIVERS = ("570.86.15", "580.159.04")
VARIANTS = ("compiled", "fused")
ON_DISK = 1000
"""Bytes of a run file of which the store has a row."""
WITHOUT_STORE = 10
"""A tenth of the runs is read from files."""
SCREEN = """
import asyncio, sys
from time import perf_counter, process_time
from gpulab.tui.app import LabApp
from gpulab.tui.screens.history import HistoryList

async def main():
    app = LabApp(ascii_only=False)
    async with app.run_test(size=(120, 40)) as pilot:
        for _ in range(20):
            await pilot.pause(0.1)
        wall, cpu = perf_counter(), process_time()
        pressed = asyncio.create_task(pilot.press("h"))
        drawn = None
        while True:
            await asyncio.sleep(0.005)
            found = pilot.app.screen.query(HistoryList)
            count = found.first().counts[1] if found else 0
            if count and drawn is None:
                drawn = perf_counter() - wall, process_time() - cpu
            if count >= int(sys.argv[1]):
                break
        await pressed
        print(*drawn, perf_counter() - wall, process_time() - cpu)

asyncio.run(main())
"""


def show_many(options):
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = home
        runs = fill(options.runs, options.scenarios)
        newest = runs[-1].scenario
        print(f"{options.runs:,} runs of {options.scenarios} scenarios: CPU s, wall s")
        for command in (["--history"], ["--history", newest], ["--history", "--json"]):
            cpu, wall = timed([*GPULAB, *command])
            print(f"  {' '.join(command):<28} {cpu:5.2f} {wall:5.2f}")
        done = subprocess.run(
            [sys.executable, "-c", SCREEN, str(options.runs)],
            check=True,
            capture_output=True,
            text=True,
        )
        drawn_s, drawn_cpu, all_s, all_cpu = map(float, done.stdout.split())
        print(f"  {'screen: its first rows':<28} {drawn_cpu:5.2f} {drawn_s:5.2f}")
        print(f"  {'screen: every run':<28} {all_cpu:5.2f} {all_s:5.2f}")
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_STATE_HOME"] = home
        count = options.runs // WITHOUT_STORE
        for number in range(count):
            write_small(number)
        cpu, wall = timed([*GPULAB, "--history"])
        print(f"  --history of {count:,} run files without a store {cpu:5.2f} {wall:5.2f}")


def timed(command):
    """(CPU seconds, wall seconds), the better of three."""
    return min(once(command) for _ in range(3))


def once(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    wall = perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def fill(count, scenarios):
    """Put so many runs into the store, each with a file."""
    runs_folder().mkdir(parents=True)
    random = np.random.default_rng(1)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    runs = []
    with Store() as store:
        for number in range(count):
            at = start + timedelta(minutes=20 * number)
            path = runs_folder() / f"{at:%Y%m%dT%H%M%S}.000-x-{number}.jsonl"
            path.write_bytes(b" " * ON_DISK)
            run = past(number, number % scenarios, at.isoformat(), str(path), random)
            assert store.add_run(run)
            runs.append(run)
    return runs


def past(number, scenario, at, path, random):
    comparisons = []
    for variant in VARIANTS:
        speedup = float(1.5 * np.exp(random.normal(0, 0.003)))
        comparisons.append(
            PastComparison(
                variant=variant,
                against="eager",
                verdict=Verdict.FASTER,
                speedup=speedup,
                low=speedup * 0.995,
                high=speedup * 1.005,
            )
        )
    return PastRun(
        at=at,
        host="node",
        run_file=path,
        scenario=f"scenario_{scenario}",
        title="A scenario of many runs: what it shows",
        path=f"/home/somebody/lab/scenario_{scenario}.py",
        source_sha256="ab" * 32,
        params={"n": 4096},
        device=DEVICE,
        environment={"driver": DRIVERS[number % 1000 > 500], "torch": "2.13", "gpulab": "0.1.0"},
        outcome=Conclusion.MEASURED,
        exit_code=ExitCode.MEASURED,
        elapsed_s=30.0,
        rounds=900,
        comparisons=tuple(comparisons),
        best=VARIANTS[0],
        fastest_s=1e-3,
    )


def write_small(number):
    subject = ScenarioFile(
        scenario="x", path="x.py", source_sha256="ab" * 32, variants=(VariantInfo(name="a"),)
    )
    file = RunFile(runs_folder() / f"20260101T{number:06}-x-1.jsonl", "0.1.0")
    file.append(
        [
            RunStarted(
                t=1.0,
                request=RunRequest(job=Measure(subject=subject)),
                at=f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}+00:00",
                host="node",
            ),
            WorkerReady(t=2.0, pid=1, device=DEVICE, environment={}),
            RunEnded(t=3.0, outcome="done"),
        ]
    )
    file.close()


if __name__ == "__main__":
    sys.exit(main())
