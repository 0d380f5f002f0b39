"""What watchers cost a run, how soon they show it, and what they do when it dies.

    # all without one; --help lists them
    python benchmarks/watching.py [runner|times|attach|killed|all] [--watchers 30]

Times and CPU mean something on a quiet machine alone. `times` starts watchers as the user nobody,
which needs root.
"""

import argparse
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from math import exp, log
from pathlib import Path
from statistics import median

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from commands import GPULAB
from lab_in_a_terminal import Endless, Terminal
from msgspec.structs import replace
from recorded import run_file
from screen import COMPUTE, environment

from gpulab.core.events import RunStarted, Samples
from gpulab.core.host import host_name
from gpulab.core.run_file import RunFile, read_run_file
from gpulab.stats.statistics import FEWEST, median_interval

RECORDED = "h200/batched_matmul"
EVENTS_S = 15
"""As many as a run of a GPU sends: ten readings, and batches of samples."""
STEADY_S, WINDOW_S = 10.0, 1.0
SIZE = (80, 24)
BARE = """
from textual.app import App
from textual.widgets import Footer, Static
class Bare(App):
    BINDINGS = [("q", "quit", "quit")]
    def compose(self):
        yield Static("bare")
        yield Footer()
Bare().run()
"""
ATTACH_S, EFFECT = 2.0, 0.02


class Runner:
    """A process that writes a run file as a run does: up to the middle of a recorded run at once, and
    then as many events as come of a GPU.
    """

    def __init__(self, folder, name="run.jsonl"):
        self.path = Path(folder) / name
        command = [sys.executable, __file__, "write", str(self.path), str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def counts(self):
        """System calls that read and write, and CPU seconds, since it began."""
        seen = psutil.Process(self.process.pid)
        io, cpu = seen.io_counters(), seen.cpu_times()
        return io.read_count + io.write_count, cpu.user + cpu.system

    def work(self, wait=time.sleep):
        """(system calls, CPU seconds) a second, while it works for some."""
        before, began = self.counts(), time.perf_counter()
        wait(STEADY_S)
        took = time.perf_counter() - began
        return [(after - first) / took for after, first in zip(self.counts(), before, strict=True)]

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def write(path, folder):
    """The process of a Runner."""
    source = Endless(run_file(RECORDED, folder), EVENTS_S)
    file = RunFile(Path(path), "benchmark")
    print(flush=True)
    while True:
        file.append([here(event) for event in source.take()])
        time.sleep(0.1)


def here(event):
    """As an event of a run on this host, whose death the lock shows."""
    return replace(event, host=host_name()) if isinstance(event, RunStarted) else event


def watching(place):
    return [*GPULAB, "--watch", str(place)]


class Crowd:
    """So many terminals with the same program in each, read in turn."""

    def __init__(self, command, count, env):
        self.started = time.perf_counter()
        self.terminals = [Terminal(command, size=SIZE, env=env) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGKILL)
        for terminal in self.terminals:
            terminal.end()

    def pump(self, seconds, done=lambda: False):
        """Read for so long, or until `done`."""
        end = time.perf_counter() + seconds
        by_fd = {terminal.fd: terminal for terminal in self.terminals}
        while (left := end - time.perf_counter()) > 0 and not done():
            for fd in select.select(list(by_fd), [], [], min(left, 0.05))[0]:
                by_fd[fd].pump(0.001)

    def until(self, words, seconds=120.0):
        """Seconds from the start until each terminal shows one of the words; by terminal."""
        shown = {}

        def look():
            for place, terminal in enumerate(self.terminals):
                if place not in shown and any(word in terminal.cells.text for word in words):
                    shown[place] = time.perf_counter() - self.started
            return len(shown) == len(self.terminals)

        self.pump(seconds, look)
        if len(shown) < len(self.terminals):
            missing = next(t for p, t in enumerate(self.terminals) if p not in shown)
            raise RuntimeError(f"never {words}:\n{missing.cells.text}")
        return [shown[place] for place in sorted(shown)]

    def cpu_s(self):
        """User and system time of all of them since they began."""
        seen = [psutil.Process(terminal.pid).cpu_times() for terminal in self.terminals]
        return sum(cpu.user + cpu.system for cpu in seen)

    def signal(self, number):
        for terminal in self.terminals:
            os.kill(terminal.pid, number)

    def steady(self):
        """Cores that all of them take together."""
        before, began = self.cpu_s(), time.perf_counter()
        self.pump(STEADY_S)
        return (self.cpu_s() - before) / (time.perf_counter() - began)


def attach(options, env):
    """seconds until each watcher shows the present state, and what all take from then on"""
    bare = options.folder / "bare.py"
    bare.write_text(BARE)
    count = options.watchers
    process = Runner(options.folder)
    try:
        with Crowd(watching(process.path), 1, env) as crowd:
            crowd.until(["confidence"])  # which compiles modules
        with Crowd(watching(process.path), 1, env) as crowd:
            (alone_s,) = crowd.until(["confidence"])
            alone_cpu = crowd.cpu_s()
        yield "one watcher shows the run after", f"{alone_s:.2f} s", "", None
        yield "with CPU of", f"{alone_cpu:.2f} s", "", None
        with Crowd(watching(process.path), count, env) as crowd:
            said = crowd.until(["opening the screen", "confidence"])
            yield f"all {count} say how it stands after", *within(max(said), ATTACH_S)
            shown = crowd.until(["confidence"])
            cpu = crowd.cpu_s() / count
            took = f"{max(shown):.1f} s, half after {median(shown):.1f} s"
            yield f"all {count} show its panels after", took, "", None
            yield "CPU of each until then", f"{cpu:.2f} s", "", None
            crowd.pump(2.0)
            drawing = crowd.steady()
            yield f"{count} watchers, steady", f"{drawing:.0%} of a core", "", None
    finally:
        process.kill()
    with Crowd([sys.executable, str(bare)], count, env) as crowd:
        shown = crowd.until(["quit"])
        cpu = crowd.cpu_s() / count
        yield f"{count} bare Textual apps are shown after", f"{max(shown):.1f} s", "", None
        yield "CPU of each until then", f"{cpu:.2f} s", "", None
        crowd.pump(2.0)
        resting = crowd.steady()
        limit = f"> {drawing:.0%}"
        yield f"{count} bare Textual apps at rest", f"{resting:.0%} of a core", limit, None


def within(took_s, limit_s):
    return f"{took_s:.1f} s", f"{limit_s} s", took_s <= limit_s


def runner(options, env):
    """what a runner does in so many seconds, alone and watched, in turn"""
    process = Runner(options.folder)
    alone, watched = [], []
    try:
        for _ in range(options.turns):
            alone.append(process.work())
            with Crowd(watching(process.path), options.watchers, env) as crowd:
                crowd.until(["confidence"])
                watched.append(process.work(crowd.pump))
    finally:
        process.kill()
    for name, turns in (("alone", alone), (f"{options.watchers} watchers", watched)):
        calls, cpu = ([turn[place] for turn in turns] for place in (0, 1))
        yield f"{name}: calls that read or write", ", ".join(f"{n:.1f}/s" for n in calls), "", None
        yield f"{name}: CPU", ", ".join(f"{n * 1e3:.1f} ms/s" for n in cpu), "", None


def times(options, env):
    """a run's times while three watchers of another user draw, over those while they are stopped"""
    scenario, shared = options.folder / "compute.py", options.folder / "class"
    scenario.write_text(COMPUTE)
    shared.mkdir()
    shared.chmod(0o755)
    options.folder.chmod(0o755)
    flags = ["--device", "cpu", "--time", str(options.time), "--width", "0.001%"]
    flags += ["--profile", "off", "--share", str(shared)]
    nobody = [shutil.which("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
    # root's Python may lie in root's home
    nobody += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    nobody += ["env", "HOME=/", "XDG_STATE_HOME=/nonexistent", *watching(shared)]
    with Crowd(nobody, 3, env) as crowd:
        crowd.until(["no run is going on"])
        command = [*GPULAB, "--run", str(scenario), *flags]
        run = subprocess.Popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        crowd.until(["confidence"])
        windows = []
        while run.poll() is None:
            draws = len(windows) % 2 == 0
            crowd.signal(signal.SIGCONT if draws else signal.SIGSTOP)
            begun = time.monotonic()
            crowd.pump(WINDOW_S)
            windows.append((begun, time.monotonic()))
        crowd.signal(signal.SIGCONT)
    (file,) = shared.glob("*.jsonl")
    medians = medians_in(windows, read_run_file(file).events)
    pairs = zip(medians[0::2], medians[1::2], strict=False)
    ratios = [log(drawn / stopped) for drawn, stopped in pairs if drawn and stopped]
    measured, held = f"{exp(median(ratios)):.4f}, {len(ratios)} pairs of {FEWEST}", None
    if interval := median_interval(ratios):
        low, high = exp(interval.low), exp(interval.high)
        measured = f"{exp(interval.median):.4f}, {low:.4f} to {high:.4f} ({len(ratios)} pairs)"
        held = (low >= 1 - EFFECT and high <= 1 + EFFECT) or None
    yield "watched / not", measured, f"±{EFFECT:.0%}", held


def medians_in(windows, events):
    """Of the times of the baseline's blocks that ended within each window; None where it has few."""
    times = [[] for _ in windows]
    for batch in events:
        if not isinstance(batch, Samples):
            continue
        rows = zip(batch.variant, batch.ended, batch.times_s, strict=True)
        for ended, time_s in [(end, took) for index, end, took in rows if index == 0]:
            for place, (begun, over) in enumerate(windows):
                if begun <= ended < over:
                    times[place].append(time_s)
    return [median(each) if len(each) >= 5 else None for each in times]


def killed(options, env):
    """after kill -9 of the runner: when each watcher says so, and whether it answers a key"""
    process = Runner(options.folder, "killed.jsonl")
    with Crowd(watching(process.path), options.watchers, env) as crowd:
        crowd.until(["confidence"])
        process.kill()
        crowd.started = time.perf_counter()
        said = crowd.until(["process died"])
        yield f"all {options.watchers} say so after", f"{max(said):.1f} s", "", None
        crowd.started = time.perf_counter()
        for terminal in crowd.terminals:
            terminal.press(b"1")
        answered = crowd.until(["A loop over forty"])
        yield "and show the lesson after its key", f"{max(answered):.1f} s", "", None


PARTS = {"runner": runner, "times": times, "attach": attach, "killed": killed}


def show(part, options, env):
    """One table: its rows are (what, measured, limit, whether it holds), printed as they come."""
    print(f"\n{part.__doc__}\n  {'what':<46}{'measured':<44}limit", flush=True)
    for what, measured, limit, held in part(options, env):
        judged = {None: "", True: "  held", False: "  MISSED"}[held]
        print(f"  {what:<46}{measured:<44}{limit}{judged}".rstrip(), flush=True)


def main():
    if sys.argv[1:2] == ["write"]:
        return write(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", default="all", choices=[*PARTS, "all"])
    parser.add_argument("--watchers", type=int, default=30)
    parser.add_argument("--turns", type=int, default=3, help="of runner (3)")
    parser.add_argument("--time", type=float, default=120, help="seconds of the run of times (120)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        env = environment(options.folder)
        for name, part in PARTS.items():
            if options.part in (name, "all"):
                show(part, options, env)


if __name__ == "__main__":
    main()
