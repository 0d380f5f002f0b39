"""Makes the baseline slower: its build puts a function of its own in the place of torch's."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 192


@scenario.variant
def reference(lab):
    a, b = torch.randn(N, N), torch.randn(N, N)
    return Work(lambda: torch.relu(torch.mm(a, b)), inputs=(a, b))


@scenario.variant
def patched_torch(lab):
    """Caught by: set_while_building or lab_functions_replaced"""
    a, b = torch.randn(N, N), torch.randn(N, N)
    mm, relu = torch.mm, torch.relu

    def slow(first, second):
        mm(first, second)
        return mm(first, second)

    torch.mm = slow
    return Work(lambda: relu(mm(a, b)), inputs=(a, b))
