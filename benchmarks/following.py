"""What does following a program cost its steps?

In one process the hooks that mark steps are armed and disarmed, and short windows of the same steps
take turns: that tells less than one percent. Then bare and followed runs of the same program take
turns, with all that following does to a process. Both measure the CPU time of steps, which other
work on the machine changes least.

    python benchmarks/following.py [SECONDS [PAIRS]]

SECONDS (10) of each kind of step in one process, PAIRS (8) of processes: under three minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
from math import exp, log
from pathlib import Path
from statistics import median

from gpulab.features.program.files import environment
from gpulab.stats.statistics import median_interval

PROGRAM = """
import json, sys, time, torch
from time import thread_time

torch.set_num_threads(1)
kind, target_s, seconds = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])

def training(rows):
    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = torch.randn(rows, 64)
    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    return step

def named(rows):
    from gpulab import step as ended
    x, y = torch.randn(rows, 64), torch.randn(64, 64)
    def step():
        x @ y
        if armed:
            ended()
    return step

def calls(rows):
    model, x = torch.nn.Linear(64, 64), torch.randn(rows, 64)
    torch.set_grad_enabled(False)
    return lambda: model(x)

def twelve(rows):
    layers = [torch.nn.Linear(64, 64) for _ in range(12)]
    model, x = torch.nn.Sequential(*layers), torch.randn(rows, 64)
    torch.set_grad_enabled(False)
    return lambda: model(x)

def cpu_s(step, steps):
    begun = thread_time()
    for _ in range(steps):
        step()
    return (thread_time() - begun) / steps

def settled(step):
    end = time.monotonic() + 1
    while time.monotonic() < end:
        step()

armed = True
make, rows = globals()[kind], 32
step = make(rows)
while target_s:
    step_s = min(cpu_s(step, 20) for _ in range(5))
    if step_s > 0.7 * target_s:
        break
    rows = int(rows * min(4, max(1.2, target_s / step_s)))
    step = make(rows)
settled(step)  # the follower is past its first windows
hooks = sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks
kept = dict(hooks)
marked = torch.nn.Module.__call__

def arm(on):
    global armed
    armed = on
    hooks.clear()
    torch.nn.Module.__call__ = marked if on else getattr(marked, "__wrapped__", marked)
    if on:
        hooks.update(kept)
    for _ in range(5):
        step()

step_s = min(cpu_s(step, 20) for _ in range(5))
steps = max(8, int(0.01 / step_s))
end = time.monotonic() + seconds
number = 0
while time.monotonic() < end:
    pair = {}
    for on in ((True, False), (False, True))[number % 2]:
        arm(on)
        pair[on] = cpu_s(step, steps)
    print(json.dumps([pair[False], pair[True]]), flush=True)
    number += 1
"""
WHOLE = """
import sys
sys.argv[1:] = ["training", "0", "0"]
{program}
parts = []
end = time.monotonic() + 1.5
while time.monotonic() < end:
    parts.append(cpu_s(step, 100))
parts.sort()
print(parts[len(parts) // 2])
"""
KINDS = (
    ("training", 100e-6, "a training step"),
    ("training", 1e-3, "a training step"),
    ("training", 10e-3, "a training step"),
    ("named", 0.0, "a product, and gpulab.step()"),
    ("calls", 0.0, "a call of one small module"),
    ("twelve", 0.0, "a call of twelve modules"),
)
FOLLOWED = (sys.executable, "-m", "gpulab", "--run", "--telemetry", "off", "--profile", "off", "--")


def in_one_process(folder, kind, target_s, seconds):
    """Pairs of CPU times of a step, bare and marked."""
    followed = Path(tempfile.mkdtemp(dir=folder))
    program = folder / "program.py"
    command = [sys.executable, program, kind, str(target_s), seconds]
    variables = environment(followed, [sys.executable], profile=None)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=variables)
    pairs = []
    for line in process.stdout:
        pairs.append(json.loads(line))
        progress(f"{len(pairs)} pairs of windows")
    if process.wait():
        raise SystemExit(f"{kind}: the program failed")
    return pairs


def whole_run_s(program, command):
    """The CPU time of a step of a run that is bare or followed."""
    line = [*command, sys.executable, program]
    printed = subprocess.run(line, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return float(printed.stdout)


def progress(words):
    if sys.stderr.isatty():
        print(f"\r{words}", end="\x1b[K\r", file=sys.stderr, flush=True)


def line(what, pairs):
    """The cost of the second of each pair over the first, in words."""
    bare_s = median(bare for bare, _ in pairs)
    added_s = median(marked - bare for bare, marked in pairs)
    interval = median_interval([log(marked / bare) for bare, marked in pairs])
    words = f"{what}, {bare_s * 1e6:.1f} us: {exp(median(log(b / a) for a, b in pairs)) - 1:+.2%}"
    if interval is None:
        words += " (too few pairs for an interval)"
    else:
        words += f" (99 %: {exp(interval.low) - 1:+.2%} to {exp(interval.high) - 1:+.2%})"
    return f"{words}, {added_s * 1e9:+.0f} ns a step, {len(pairs)} pairs"


def main():
    seconds = sys.argv[1] if len(sys.argv) > 1 else "10"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 8
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = name
        (folder / "program.py").write_text(PROGRAM)
        print("windows of one process, bare and marked:", flush=True)
        for kind, target_s, what in KINDS:
            pairs = in_one_process(folder, kind, target_s, seconds)
            print(f"  {line(what, pairs)}", flush=True)
        whole = folder / "whole.py"
        whole.write_text(WHOLE.format(program=PROGRAM))
        print("processes, bare and followed:", flush=True)
        pairs = []
        for number in range(count):
            pair = {}
            for command in ((), FOLLOWED)[:: -1 if number % 2 else 1]:
                pair[bool(command)] = whole_run_s(whole, command)
            pairs.append((pair[False], pair[True]))
            print(f"  pair {number + 1}: {pairs[-1][1] / pairs[-1][0] - 1:+.1%}", flush=True)
        if pairs:
            print(f"  {line('a training step', pairs)}")


if __name__ == "__main__":
    main()
