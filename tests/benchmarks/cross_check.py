"""Time per step against `torch.utils.benchmark.Timer("step()")`, interleaved on the same build.

Prints the ratio of the two, ours over theirs, with its 99 % interval, for steps from 20 us to 20 ms, and the cost of
an empty step by both.

    python tests/benchmarks/cross_check.py
"""

from math import exp
from statistics import median

import torch
from torch.utils.benchmark import Timer

from gpulab import Work
from gpulab.analysis.statistics import log_ratios, median_interval
from gpulab.worker.building.build import Build
from gpulab.worker.timing.clock import WallClock

PAIRS = 150
SIZES = {"product of 96": 96, "product of 384": 384, "product of 1024": 1024}


def product(size):
    left, right, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return lambda: torch.mm(left, right, out=out)


def compare(step):
    clock = WallClock(None)
    build = Build(Work(step), 0.0, None)
    timer = Timer("step()", globals={"step": step})
    steps, _ = clock.steps_per_block(build)
    for _ in range(20):
        clock.block(build, steps)
    ours, theirs = [], []
    for pair in range(PAIRS):
        for side in (0, 1) if pair % 2 else (1, 0):
            if side:
                theirs.append(timer.timeit(steps).mean)
            else:
                ours.append(clock.block(build, steps).time_s)
    return ours, theirs, steps


def main():
    torch.set_num_threads(1)
    for name, size in SIZES.items():
        ours, theirs, steps = compare(product(size))
        ratio = median_interval(log_ratios(ours, theirs))
        print(
            f"{name}: {median(ours) * 1e6:.1f} us, Timer {median(theirs) * 1e6:.1f} us, {steps} steps a block, "
            f"ratio {exp(ratio.median):.4f} [{exp(ratio.low):.4f}, {exp(ratio.high):.4f}]"
        )
    ours, theirs, _ = compare(lambda: None)
    print(f"empty step: {median(ours) * 1e9:.1f} ns, Timer {median(theirs) * 1e9:.1f} ns")


if __name__ == "__main__":
    main()
