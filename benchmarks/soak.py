"""Does a long run stay small? One run of a small step in the app, with telemetry.

    # 30 without an argument; FOLDER keeps the run file
    python benchmarks/soak.py [MINUTES] [FOLDER]

Prints every minute the memory, the open descriptors and the threads of every process: the app, its
supervisor, the worker, and the sampler. At the end: how memory changed between the second and the
last quarter, and what was measured of what was asked.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil
from commands import GPULAB

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from pseudo_terminal import Pty
from screen import has_ended

from gpulab.core.run_file import read_run_file
from gpulab.features.telemetry.report import TelemetryState
from gpulab.headless.scripting import load
from gpulab.report.build import fold_all

EVERY_S, LINE_S = 5.0, 60.0
STEP = '''
"""Soak: a small step, and a variant of which every other build is slow, so that its interval never narrows."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("benchmark")
builds = 0
@scenario.variant
def steady(lab):
    """One addition."""
    data = torch.ones(1 << 12)
    return Work(lambda: data + 1, inputs=data)
@scenario.variant
def by_turns(lab):
    """One addition, or eight."""
    global builds
    builds += 1
    print("build", builds)
    lab.report("builds", builds)
    data, count = torch.ones(1 << 12), 8 if builds % 2 else 1
    def step():
        for _ in range(count):
            out = data + 1
        return out
    return Work(step, inputs=data)
'''


def main(minutes="30", folder=None):
    with tempfile.TemporaryDirectory() as temporary:
        soak(float(minutes) * 60, Path(folder or temporary))


def soak(time_s, folder):
    scenario = folder / "soak.py"
    scenario.write_text(STEP)
    command = [*GPULAB, str(scenario), "--device", "cpu", "--time", f"{time_s:.0f}"]
    screen = Pty(command, env={**os.environ, "XDG_STATE_HOME": str(folder)})
    screen.read(30, until=b"soak")
    screen.press(b"r")
    while not (files := list(folder.rglob("*.jsonl"))):
        screen.read(EVERY_S)
    (file,) = files
    samples, started, printed = [], time.monotonic(), 0.0
    while not has_ended(file):
        screen.read(EVERY_S)
        sample = measured({"app": screen.pid, **of_the_run(screen.pid)})
        samples.append(sample)
        elapsed = time.monotonic() - started
        if elapsed >= printed:
            printed += LINE_S
            print_line(elapsed, sample, file)
    screen.press(b"q")
    print(f"\nexit code {screen.end(60)}")
    print_growth(samples)
    state, report = fold_all(read_run_file(file).events), load(file)
    job = state.request.job
    print(
        f"asked for {job.time_s:.0f} s of rounds: they and their builds took "
        f"{state.samples.end - state.samples.start:.0f} s; stopped on {report.method.stopped}; "
        f"{report.method.epochs:,} epochs, {state.samples.blocks:,} blocks, "
        f"{state.part(TelemetryState).readings:,} readings; {report.outcome}, "
        f"{file.stat().st_size / 1e6:.0f} MB"
    )


def of_the_run(app):
    """The processes of the run by what they are."""
    found = {}
    for process in psutil.Process(app).children(recursive=True):
        try:
            module = " ".join(process.cmdline())
            depth = (
                "worker"
                if "gpulab.engine" in (" ".join(process.parent().cmdline()))
                else "supervisor"
            )
        except (psutil.Error, AttributeError):
            continue
        if "gpulab.features.telemetry" in module:
            found["sampler"] = process.pid
        elif "gpulab.engine" in module:
            found[depth] = process.pid
    return found


def measured(pids):
    """By name: (MB, descriptors, threads)."""
    sample = {}
    for name, pid in pids.items():
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            sample[name] = process.memory_info().rss / 1e6, process.num_fds(), process.num_threads()
        except psutil.Error:
            continue
    return sample


def print_line(elapsed, sample, file):
    parts = (
        f"{name} {mb:.1f} MB {fds} fd {threads} th" for name, (mb, fds, threads) in sample.items()
    )
    print(
        f"{elapsed / 60:5.1f} min  {'  '.join(parts)}  file {file.stat().st_size / 1e6:.1f} MB",
        flush=True,
    )


def print_growth(samples):
    quarter = max(1, len(samples) // 4)
    second, last = samples[quarter : 2 * quarter], samples[-quarter:]
    print(f"{'process':<14}{'2nd quarter':>14}{'last quarter':>14}{'most':>12}{'descriptors':>14}")
    for name in samples[len(samples) // 2]:
        before, after = (
            [sample[name][0] for sample in part if name in sample] for part in (second, last)
        )
        most = max(sample[name][0] for sample in samples if name in sample)
        fds = [sample[name][1] for sample in samples if name in sample]
        if before and after:
            print(
                f"{name:<14}{median(before):>11.1f} MB{median(after):>11.1f} MB{most:>9.1f} MB"
                f"{min(fds):>8} to {max(fds)}"
            )


if __name__ == "__main__":
    main(*sys.argv[1:])
