"""What sampling costs a program: five loops in windows with the timer on and off, in pairs.

    python benchmarks/sampling_cost.py [SECONDS of each]

Prints the ratio of a window with samples over one without, with its 99 % interval.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter, thread_time

import numpy
import torch

from gpulab.proc.stacks import Stacks

READER = """
import sys, threading
from pathlib import Path
from gpulab.proc.stack_reader import Reader

Reader(Path(sys.argv[1])).start()
threading.Event().wait()
"""
AGENT = Path(__file__).parents[1] / "gpulab/features/program/agent"
WINDOW_S = 0.1
RECORD = {str(number): list(range(10)) for number in range(200)}
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
data = torch.randn(32, 64)
values = numpy.random.default_rng(0).random(20_000)


def training():
    """Small operations of torch."""
    optimizer.zero_grad()
    model(data).square().mean().backward()
    optimizer.step()


def product():
    """One long operation."""
    torch.mm(LARGE, LARGE)


LARGE = torch.randn(400, 400)
LOOPS = {
    "training": training,
    "product": product,
    "python": lambda: sum(i * i for i in range(2_000)),
    "json": lambda: json.loads(json.dumps(RECORD)),
    "numpy": lambda: numpy.sort(values).cumsum(),
}


def steps_in(function, seconds):
    """Return the steps of a window for each second of CPU time: what others take is in none."""
    count = 0
    began, ran = perf_counter(), thread_time()
    while perf_counter() - began < seconds:
        function()
        count += 1
    return count / (thread_time() - ran)


def interval(ratios):
    """Return the median and the ends of its 99 % interval, by resampling."""
    draw = random.Random(0)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(2_000))
    return median(ratios), medians[10], medians[-11]


def main(seconds=20.0):
    sys.path.insert(0, str(AGENT))
    folder = tempfile.mkdtemp()
    reader = subprocess.Popen([sys.executable, "-c", READER, folder])
    try:
        measured(__import__("gpulab_samples").begin(folder, Stacks(folder)), seconds)
    finally:
        reader.kill()


def measured(samples, seconds):
    """Print what samples cost each loop."""
    for name, function in LOOPS.items():
        ends = perf_counter() + 6.0
        while perf_counter() < ends:  # the first seconds cost more, and are said apart
            function()
        every_s = samples._every_s
        ratios = []
        ends = perf_counter() + seconds
        while perf_counter() < ends:
            rates = {}
            for on in random.sample([True, False], 2):
                samples._arm(every_s if on else 0.0)
                rates[on] = steps_in(function, WINDOW_S)
            ratios.append(rates[False] / rates[True])
        samples._arm(every_s)
        middle, low, high = interval(ratios)
        words = f"{middle:.4f} ({low:.4f} to {high:.4f}), {len(ratios)} pairs"
        print(f"{name:10} {words}, a sample each {every_s * 1e3:.0f} ms", flush=True)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
