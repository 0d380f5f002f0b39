"""What does it cost a rank that its arrivals are read?

In one process, a rank of a group by itself, windows in which a thread reads 20 times a second take
turns with windows without; a twentieth of what that adds is one reading, of steps of a millisecond.
(There is one a second, or fewer where that would be more than 0.2 % of the time.) The same of the
spans. Windows count the CPU time of all threads for a training step with three all-reduces. Then
bare processes with and without torch's flight recorder take turns, and count what a call of a small
all-reduce takes.

    python benchmarks/following_ranks.py [PAIRS]

PAIRS (16) of windows: three minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from gpulab.features.program.files import environment
from gpulab.stats.statistics import median_interval

PROGRAM = """
import json, sys, threading, time
import torch
import torch.distributed as dist

OFTEN = 20  # readings a second, of which there is one
torch.set_num_threads(1)
pairs, store = int(sys.argv[1]), sys.argv[2]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(3)))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
x = torch.randn(32, 64)

def step():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    for layer in model:
        dist.all_reduce(layer.weight.grad)
    optimizer.step()

def window(seconds):
    begun, end, steps = time.process_time(), time.monotonic() + seconds, 0
    while time.monotonic() < end:
        step()
        steps += 1
    return (time.process_time() - begun) / steps

arrivals = sys.modules["_gpulab_agent"].follower._arrivals
while not hasattr(dist.all_reduce, "__wrapped__"):
    step()
window(2)
holders = [(torch.autograd, "backward"), (dist, "all_reduce")]
timed = [(holder, name, getattr(holder, name)) for holder, name in holders]
read, reading = arrivals._read, threading.Event()
arrivals._read = lambda: None

def reads():
    while True:
        reading.wait()
        arrivals._newest.clear()  # all that torch keeps is new
        read()
        time.sleep(1 / OFTEN)

threading.Thread(target=reads, daemon=True).start()

def arm_spans(on):
    arrivals._off = not on
    for holder, name, function in timed:
        setattr(holder, name, function if on else function.__wrapped__)

def arm_reading(on):
    reading.set() if on else reading.clear()

for arm, count, seconds in ((arm_reading, pairs, 1.0), (arm_spans, 50 * pairs, 0.02)):
    for number in range(count):
        pair = {}
        for on in ((True, False), (False, True))[number % 2]:
            arm(on)
            pair[on] = window(seconds)
        print(json.dumps([arm.__name__, pair[False], pair[True]]), flush=True)
    arm(False)
"""
OFTEN = 20
CALLS = """
import sys, time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}", rank=0, world_size=1)
x = torch.ones(1000)
parts = []
for _ in range(40):
    begun = time.process_time()
    for _ in range(500):
        dist.all_reduce(x)
    parts.append((time.process_time() - begun) / 500)
print(sorted(parts)[len(parts) // 4])
"""


def show(what, costs_s):
    interval = median_interval(costs_s)
    words = f"{what}: {median(costs_s) * 1e6:.0f} us"
    if interval is not None:
        words += f" (99 %: {interval.low * 1e6:.0f} to {interval.high * 1e6:.0f})"
    print(f"{words}, {len(costs_s)} pairs", flush=True)


def main():
    pairs = sys.argv[1] if len(sys.argv) > 1 else "16"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "program.py").write_text(PROGRAM)
        (folder / "calls.py").write_text(CALLS)
        followed = folder / "followed"
        followed.mkdir()
        variables = {
            **environment(followed, [sys.executable], profile=None),
            "RANK": "0",
            "WORLD_SIZE": "2",
        }
        command = [sys.executable, folder / "program.py", pairs, folder / "store"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=variables)
        found = [json.loads(line) for line in process.stdout]
        if process.wait():
            raise SystemExit("the program failed")
        reading = [pair for what, *pair in found if what == "arm_reading"]
        # the share of a second that OFTEN readings take
        show("a reading of 256 records", [(on / off - 1) / OFTEN for off, on in reading])
        spans = [pair for what, *pair in found if what == "arm_spans"]
        show("spans of a step", [on - off for off, on in spans])
        calls = {"0": [], "256": []}
        for number in range(8):
            for size in sorted(calls, reverse=bool(number % 2)):
                command = [sys.executable, folder / "calls.py", folder / f"store{number}-{size}"]
                environ = {**os.environ, "TORCH_FR_BUFFER_SIZE": size}
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environ)
                calls[size].append(float(done.stdout))
        off, on = (median(calls[size]) * 1e6 for size in ("0", "256"))
        print(f"the recorder: {on - off:+.1f} us of an all-reduce of {off:.1f} us")


if __name__ == "__main__":
    main()
