"""Makes the baseline slower: garbage is looked for after every few objects that it makes."""

import gc

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256


@scenario.variant
def reference(lab):
    x = torch.randn(N)
    return Work(lambda: torch.tensor([[value, -value] for value in x.tolist()]), inputs=x)


@scenario.variant
def garbage_collected(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N)
    gc.set_threshold(1)
    gc.callbacks.append(lambda phase, info: sum(range(20)))

    def step():
        values = torch.tensor(x.tolist())
        return torch.stack([values, -values], 1)

    return Work(step, inputs=x)
