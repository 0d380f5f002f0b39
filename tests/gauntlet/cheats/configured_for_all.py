"""Makes the baseline slower: its build sets a number of the module that the baseline goes by."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256
CONFIG = {"rows at a time": 128}


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: softmax_in_pieces(x), inputs=x)


@scenario.variant
def configured_for_all(lab):
    """Caught by: variants alone or baseline_slowed"""
    x = torch.randn(N, N)
    CONFIG["rows at a time"] = 4
    return Work(lambda: x.softmax(1), inputs=x)


def softmax_in_pieces(x):
    return torch.cat([piece.softmax(1) for piece in x.split(CONFIG["rows at a time"])])
