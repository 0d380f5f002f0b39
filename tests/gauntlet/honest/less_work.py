"""Does all that it declares, in one operation and not in two."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192
FLOPS = 2 * N**3


@scenario.variant
def reference(lab):
    a, b, c = torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: (a @ b).add_(c), inputs=(a, b, c), flops=FLOPS)


@scenario.variant
def less_work(lab):
    a, b, c = torch.randn(N, N), torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: torch.addmm(c, a, b), inputs=(a, b, c), flops=FLOPS)
