"""Two results in one tensor, one of them a millionth of the other."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 128


def operands():
    return torch.randn(N, N), torch.randn(N, N), torch.randn(N, N) * 1e-6


@scenario.variant
def reference(lab):
    a, b, small = operands()
    return Work(lambda: torch.cat([a @ b, small @ b]), inputs=(a, b, small))


@scenario.variant
def half_is_zeros(lab):
    """Leaves the small one at zero.

    Caught by: outputs
    """
    a, b, small = operands()
    zeros = torch.zeros(N, N)
    return Work(lambda: torch.cat([a @ b, zeros]), inputs=(a, b, small))
