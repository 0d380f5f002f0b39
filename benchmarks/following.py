"""What does following a program cost its steps? Bare and followed runs of the same program take
turns; each prints the CPU time of its steps, which other work on the machine changes least.

    python benchmarks/following.py [PAIRS] [SECONDS]
"""

import os
import subprocess
import sys
import tempfile
from math import exp, log
from pathlib import Path

from gpulab.stats.statistics import median_interval

PROGRAM = """
import sys, time, torch
torch.set_num_threads(1)
kind, seconds = sys.argv[1], float(sys.argv[2])
if kind == "train":
    layers = [torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = torch.randn(32, 64)
    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
else:
    model, x = torch.nn.Linear(64, 64), torch.randn(32, 64)
    torch.set_grad_enabled(False)
    def step():
        model(x)
end = time.monotonic() + 1
while time.monotonic() < end:
    step()
parts = []
end = time.monotonic() + seconds
while time.monotonic() < end:
    begun = time.thread_time()
    for _ in range(200):
        step()
    parts.append((time.thread_time() - begun) / 200)
parts.sort()
print(parts[len(parts) // 2])
"""
COMMANDS = {
    "bare": [],
    "followed": [
        *(sys.executable, "-m", "gpulab", "--run", "--telemetry", "off", "--profile", "off"),
        "--",
    ],
}


def step_s(command, program, kind, seconds):
    """The median CPU time of a step."""
    line = [*command, sys.executable, program, kind, seconds]
    printed = subprocess.run(line, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return float(printed.stdout)


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seconds = sys.argv[2] if len(sys.argv) > 2 else "2"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        program = Path(folder) / "program.py"
        program.write_text(PROGRAM)
        for kind, what in (
            ("train", "a training step, 64 wide"),
            ("infer", "a call of one small module"),
        ):
            ratios, bare_s, added_s = [], [], []
            for number in range(pairs):
                order = list(COMMANDS)[:: -1 if number % 2 else 1]
                times = {name: step_s(COMMANDS[name], program, kind, seconds) for name in order}
                ratios.append(log(times["followed"] / times["bare"]))
                bare_s.append(times["bare"])
                added_s.append(times["followed"] - times["bare"])
            interval = median_interval(ratios)
            added = median_interval(added_s)
            low, middle, high = (exp(x) - 1 for x in (interval.low, interval.median, interval.high))
            bare_us = median_interval(bare_s).median * 1e6
            print(
                f"{what}: {bare_us:.1f} us bare, followed {middle:+.2%} (99 %: {low:+.2%} to "
                f"{high:+.2%}; {added.median * 1e9:+.0f} ns a step), {pairs} pairs",
                flush=True,
            )


if __name__ == "__main__":
    main()
