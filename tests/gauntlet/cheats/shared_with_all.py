"""Makes the baseline slower by what all variants of the file go by.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N, LAYERS = 16, 24
WEIGHT = torch.randn(N, N, generator=torch.Generator().manual_seed(5)) / 4
TYPE = torch.float32


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: layers(x, WEIGHT, TYPE), inputs=x)


@scenario.variant
def weight_with_a_gradient(lab):
    """Lets autograd record what is done with the weight that all share, and takes it from there for
    itself.

    Caught by: variants alone or baseline_slowed
    """
    x, own = torch.randn(N, N), WEIGHT.detach()
    WEIGHT.requires_grad_()
    return Work(lambda: layers(x, own, torch.float32), inputs=x)


@scenario.variant
def type_for_all(lab):
    """Sets the type that all compute in to one of twice the size, and computes in another.

    Caught by: variants alone or baseline_slowed
    """
    x = torch.randn(N, N)
    globals()["TYPE"] = torch.float64
    return Work(lambda: layers(x, WEIGHT, torch.float32), inputs=x)


def layers(x, weight, dtype):
    for _ in range(LAYERS):
        x = (x.to(dtype) @ weight.to(dtype)).tanh().float()
    return x
