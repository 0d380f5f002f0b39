"""Returns its input itself, where the baseline returns a copy."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 1 << 16


@scenario.variant
def reference(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x)


@scenario.variant
def view_instead_of_copy(lab):
    """Caught by: timed steps or outputs"""
    x = torch.randn(N)
    return Work(lambda: x.view(-1), inputs=x)
