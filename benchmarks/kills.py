"""What is left when a process of a run is killed, by its kind and the stage of the run?

    python benchmarks/kills.py

Starts a run over and over, waits for a stage, and takes one process away by SIGKILL: the face, the
supervisor, the worker, a process that measures, the sampler of telemetry, or a rank. Prints the exit
code of the run, whether its file has an end, and how many processes are left.
"""

import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from conftest import Lab

STAGES = ("build", "warm-up", "measure", "profile")
_SLOW_S = 3
"""So long takes the one build, and the one first step, that a kill is to hit."""
KINDS = ("face", "supervisor", "worker", "measuring", "telemetry", "rank")
SCENARIO = """\
import time

import torch
from gpulab import Scenario, Work

scenario = Scenario("kills"{ranks})


@scenario.variant
def first(lab):
    a = torch.rand(64, 64)
    return Work(lambda: a @ a)


@scenario.variant
def second(lab):
    time.sleep({build_s})
    a = torch.rand(64, 64)
    waits_s = [{first_step_s}]

    def step():
        time.sleep(waits_s.pop() if waits_s else 0)
        return torch.mm(a, a)

    return Work(step)
"""
_WAIT_S = 60.0


def main():
    failed = False
    print(f"{'killed':12} {'stage':9} {'exit code':>9}  {'run file':10} {'left':>4}  seconds")
    for kind in KINDS:
        for stage in STAGES:
            with tempfile.TemporaryDirectory() as folder:
                failed |= trial(kind, stage, Lab(Path(folder)))
    return failed


def trial(kind, stage, lab):
    """Whether nothing was killed, something was left, or the run did not end."""
    ranks = ", ranks=2" if kind == "rank" else ""
    build_s = _SLOW_S if stage == "build" else 0
    first_step_s = _SLOW_S if stage == "warm-up" else 0
    source = SCENARIO.format(ranks=ranks, build_s=build_s, first_step_s=first_step_s)
    lab.write("kills.py", source)
    words = ("--run", "kills.py", "--device", "cpu", "--time", "3", "--output", "run.jsonl")
    run = lab.start(*words, "--telemetry", "on")
    file = lab.folder / "run.jsonl"
    victim = wait_for(kind, stage, run, file)
    if victim is None:
        run.kill()
        run.communicate()
        print(f"{kind:12} {stage:9} {'no such process then':>20}")
        return True
    begun = time.monotonic()
    victim.kill()
    try:
        run.communicate(timeout=_WAIT_S)
    except Exception:
        run.kill()
    took = time.monotonic() - begun
    while lab.processes() and time.monotonic() - begun < took + 3:
        time.sleep(0.05)
    left = len(lab.processes())
    ended = '"RunEnded"' in file.read_text(errors="replace")
    says = "has an end" if ended else "no end"
    print(f"{kind:12} {stage:9} {run.returncode:>9}  {says:10} {left:>4}  {took:.1f}", flush=True)
    return bool(left) or took >= _WAIT_S


def wait_for(kind, stage, run, file):
    """The process to kill, once the run is in that stage; None where there never was one."""
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end and run.poll() is None:
        if stage in stages_of(file) and (found := process_of(kind, run.pid)):
            return found
        time.sleep(0.02)
    return None


def stages_of(file):
    if not file.exists():
        return []
    stages = []
    for line in file.read_text(errors="replace").splitlines():
        if '"StageStarted"' in line and line.endswith("}"):
            stages.append(json.loads(line)["stage"])
    return stages[-1:]


def process_of(kind, face):
    children = psutil.Process(face).children()
    commands = {child: " ".join(child.cmdline()) for child in children}
    supervisor = next((each for each, line in commands.items() if "gpulab.engine" in line), None)
    if kind == "face":
        return psutil.Process(face)
    if kind == "telemetry":
        return next((each for each, line in commands.items() if ".telemetry" in line), None)
    if supervisor is None or kind == "supervisor":
        return supervisor
    workers = supervisor.children()
    if kind == "worker":
        return next(iter(workers), None)
    below = [each for worker in workers for each in worker.children(recursive=True)]
    leaves = [each for each in below if not each.children()]
    return (leaves or [None])[-1 if kind == "measuring" else 0]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("COLUMNS", "80")
    sys.exit(main())
