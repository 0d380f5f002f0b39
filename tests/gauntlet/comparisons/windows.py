"""Means over sliding windows, in NumPy."""

import numpy as np

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, WINDOW = 2048, 16


def signal():
    return np.random.rand(N)


@scenario.variant
def loop(lab):
    x = signal()
    return Work(
        lambda: np.array([x[at : at + WINDOW].mean() for at in range(0, N - WINDOW + 1, 16)]),
        inputs=x,
    )


@scenario.variant
def strides(lab):
    x = signal()
    return Work(lambda: np.lib.stride_tricks.sliding_window_view(x, WINDOW)[::16].mean(1), inputs=x)


@scenario.variant
def reshaped(lab):
    x = signal()
    return Work(lambda: x.reshape(-1, WINDOW).mean(1), inputs=x)


@scenario.variant
def running_sum(lab):
    x = signal()

    def step():
        sums = np.concatenate([[0.0], np.cumsum(x)])
        return (sums[WINDOW::16] - sums[:-WINDOW:16]) / WINDOW

    return Work(step, inputs=x)
