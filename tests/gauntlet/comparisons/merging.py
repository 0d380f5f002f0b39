"""Two sorted lists made one."""

import numpy as np
import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 2048


def lists():
    return torch.randn(N).sort().values, torch.randn(N).sort().values


@scenario.variant
def sort_again(lab):
    a, b = lists()
    return Work(lambda: torch.cat([a, b]).sort().values, inputs=(a, b))


@scenario.variant
def by_rank(lab):
    a, b = lists()
    numbers = torch.arange(N)

    def step():
        out = torch.empty(2 * N)
        out[torch.searchsorted(b, a) + numbers] = a
        out[torch.searchsorted(a, b, right=True) + numbers] = b
        return out

    return Work(step, inputs=(a, b))


@scenario.variant
def in_numpy(lab):
    a, b = (part.numpy() for part in lists())
    return Work(lambda: np.sort(np.concatenate([a, b]), kind="stable"), inputs=(a, b))
