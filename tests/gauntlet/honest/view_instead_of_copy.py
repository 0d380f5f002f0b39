"""Returns a view of its input, as the baseline does."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.transpose(0, 1).reshape(N * N // 4, 4), inputs=x)


@scenario.variant
def view_instead_of_copy(lab):
    x = torch.randn(N, N)
    return Work(lambda: x.t().reshape(-1, 4), inputs=x)
