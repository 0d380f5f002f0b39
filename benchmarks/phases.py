"""What a phase costs in a step of a millisecond: off, as in every timed sample, and on, as in the
windows between.

python benchmarks/phases.py
"""

import sys
from time import perf_counter

import torch

from gpulab.engine.build.lab import PhaseRecorder

STEP_S, TIMES, TRIES = 1e-3, 100, 300


def least(function, within=lambda run: run()):
    """Seconds of one time, `within` something that may go on when it is done: events are read after
    the step.
    """
    times = []

    def timed():
        began = perf_counter()
        function()
        times.append(perf_counter() - began)

    for _ in range(TRIES):
        within(timed)
    return min(times) / TIMES


def main():
    recorder = PhaseRecorder(torch.device("cuda:0" if torch.cuda.is_available() else "cpu"))

    def marked():
        for _ in range(TIMES):
            with recorder.phase("data"):
                pass

    def plain():
        for _ in range(TIMES):
            pass

    base = least(plain)
    costs = {"off": least(marked) - base, "on": least(marked, recorder.record) - base}
    for name, cost in costs.items():
        print(
            f"a phase, {name}: {cost * 1e9:.0f} ns, {cost / STEP_S:.4%} of a step of "
            f"{STEP_S * 1e3:.0f} ms"
        )
    return max(costs.values()) > 0.01 * STEP_S


if __name__ == "__main__":
    sys.exit(main())
