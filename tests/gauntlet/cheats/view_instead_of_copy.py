"""Returns its input itself, where the baseline returns a copy.

Caught by: timed steps or outputs
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 1 << 16


@scenario.variant
def reference(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x)


@scenario.variant
def suspect(lab):
    x = torch.randn(N)
    return Work(lambda: x.view(-1), inputs=x)
