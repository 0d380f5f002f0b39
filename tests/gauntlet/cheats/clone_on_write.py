"""Shares the memory of what it copies until somebody writes to it, which nobody does."""

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
    """Caught by: physics"""
    x = torch.randn(N)
    return Work(lambda: torch._lazy_clone(x), inputs=x, bytes=8 * N)
