"""Makes the baseline slower: a tracer looks at every call of Python, of which the baseline makes
many.
"""

import sys

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 64


@scenario.variant
def reference(lab):
    x = torch.randn(N)
    return Work(lambda: torch.stack([doubled(value) for value in x]), inputs=x)


@scenario.variant
def traced(lab):
    """Caught by: variants alone or baseline_slowed or set_while_building or
    lab_functions_replaced
    """
    x = torch.randn(N)
    sys.setprofile(lambda frame, event, argument: sum(range(50)))
    return Work(lambda: torch.stack(list((x * 2).unbind())), inputs=x)


def doubled(value):
    return value * 2
