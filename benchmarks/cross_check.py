"""Time per step against `torch.utils.benchmark.Timer("step()")`, interleaved on the same build.

Prints the ratio of the two, ours over theirs, with its 99 % interval, for steps from 20 us to 20
ms, for an empty step, and for what a whole block of one empty step takes, bookkeeping included. Two
versions of the lab compare by their ratios: nanoseconds are those of the machine and its moment.

    python benchmarks/cross_check.py
"""

from math import exp
from statistics import median
from time import perf_counter

import torch
from torch.utils.benchmark import Timer

from gpulab import Work
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.stats.statistics import log_ratios, median_interval

PAIRS = 150
SIZES = {"product of 96": 96, "product of 384": 384, "product of 1024": 1024}


def product(size):
    left, right, out = torch.rand(size, size), torch.rand(size, size), torch.empty(size, size)
    return lambda: torch.mm(left, right, out=out)


def compare(step):
    """Seconds per step: ours, theirs, and the steps of a block."""
    clock = WallClock(None)
    build = Build(Work(step), 0.0, None)
    timer = Timer("step()", globals={"step": step})
    steps, _ = clock.steps_per_block(build)
    for _ in range(20):
        clock.block(build, steps)
    ours, theirs = in_turn(
        lambda: clock.block(build, steps).time_s, lambda: timer.timeit(steps).mean
    )
    return ours, theirs, steps


def whole_blocks():
    """Seconds from the call of a block of one empty step, and of `timeit(1)`, to their return."""
    clock, build = WallClock(None), Build(Work(empty), 0.0, None)
    timer = Timer("step()", globals={"step": empty})
    return in_turn(
        lambda: wall_s(lambda: clock.block(build, 1)), lambda: wall_s(lambda: timer.timeit(1))
    )


def in_turn(our_time, their_time):
    ours, theirs = [], []
    for pair in range(PAIRS):
        for side in (0, 1) if pair % 2 else (1, 0):
            if side:
                theirs.append(their_time())
            else:
                ours.append(our_time())
    return ours, theirs


def wall_s(call):
    began = perf_counter()
    call()
    return perf_counter() - began


def empty():
    pass


def ratio_of(ours, theirs):
    ratio = median_interval(log_ratios(ours, theirs))
    return f"ratio {exp(ratio.median):.4f} [{exp(ratio.low):.4f}, {exp(ratio.high):.4f}]"


def main():
    torch.set_num_threads(1)
    for name, size in SIZES.items():
        ours, theirs, steps = compare(product(size))
        times = (
            f"{median(ours) * 1e6:.1f} us, Timer {median(theirs) * 1e6:.1f} us, {steps} steps a "
            "block"
        )
        print(f"{name}: {times}, {ratio_of(ours, theirs)}", flush=True)
    ours, theirs, _ = compare(empty)
    times = f"{median(ours) * 1e9:.1f} ns, Timer {median(theirs) * 1e9:.1f} ns"
    print(f"empty step: {times}, {ratio_of(ours, theirs)}", flush=True)
    ours, theirs = whole_blocks()
    times = f"{median(ours) * 1e6:.1f} us, timeit(1) {median(theirs) * 1e6:.1f} us"
    print(f"a whole block of one empty step: {times}, {ratio_of(ours, theirs)}")


if __name__ == "__main__":
    main()
