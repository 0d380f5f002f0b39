"""Copies to memory that it keeps."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet", roof="device memory")
N = 500_000


@scenario.variant
def reference(lab):
    x = torch.randn(N)
    return Work(x.clone, inputs=x, bytes=8 * N)


@scenario.variant
def clone_on_write(lab):
    x, out = torch.randn(N), torch.empty(N)
    return Work(lambda: out.copy_(x), inputs=x, bytes=8 * N)
