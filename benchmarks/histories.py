"""Does a long history stay quick?

    python benchmarks/histories.py [--runs 10000] [--scenarios 50]

Writes run files and their rows into a store of its own, and times `--history` (CPU seconds of the
whole process, and wall), the history screen until its list is drawn, and `--history` without the
store for a tenth of the files, which are then read again.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from time import perf_counter

import numpy as np
from commands import GPULAB

from gpulab.core.events import RunEnded, RunStarted, WorkerReady
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.run_file import RunFile
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.report.past import PastComparison, PastRun
from gpulab.session.run_files import runs_folder
from gpulab.session.store import Store

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
from gpulab.tui.screens.history import MOST_LISTED, HistoryList

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
            count = found.first().row_count if found else 0
            if count and drawn is None:
                drawn = perf_counter() - wall, process_time() - cpu
            if count >= min(int(sys.argv[1]), MOST_LISTED):
                break
        await pressed
        print(*drawn, perf_counter() - wall, process_time() - cpu)

asyncio.run(main())
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--scenarios", type=int, default=50)
    options = parser.parse_args()
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
            store.add_run(run)
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
                measured=speedup,
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
