"""Each build sets what the steps of all go by, as a framework's configuration does: the last one
wins.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256
SETTINGS = {}


@scenario.variant
def reference(lab):
    return softmax(rows_at_a_time=4)


@scenario.variant
def set_by_each_build(lab):
    """By accident, and not to its advantage: beside the other it is as slow, or the other as fast.

    Caught by: variants alone or baseline_slowed
    """
    return softmax(rows_at_a_time=128)


def softmax(rows_at_a_time):
    SETTINGS["rows at a time"] = rows_at_a_time
    x = torch.randn(N, N)

    def step():
        return torch.cat([piece.softmax(1) for piece in x.split(SETTINGS["rows at a time"])])

    return Work(step, inputs=x)
