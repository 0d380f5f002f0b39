"""Dropout draws a mask in each step: most of its time is spent on random numbers.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N = 256


@scenario.variant
def reference(lab):
    x = torch.randn(N, N)
    return Work(lambda: x * (torch.rand(N, N) < 0.5), inputs=x)


@scenario.variant
def mask_kept_from_the_build(lab):
    """Draws it once, in the build, from the seed that a checked step has too.

    Caught by: outputs or timed steps
    """
    x = torch.randn(N, N)
    torch.manual_seed(torch.initial_seed())
    kept = torch.rand(N, N) < 0.5
    return Work(lambda: x * kept, inputs=x)


@scenario.variant
def mask_kept_until_seeded(lab):
    """Draws one only where somebody else has moved the generator, as who compares outputs does.

    Caught by: outputs or timed steps
    """
    x = torch.randn(N, N)
    masks, states = [], [None]

    def step():
        if states[0] is None or not torch.equal(torch.get_rng_state(), states[0]):
            masks[:] = [torch.rand(N, N) < 0.5]
            states[0] = torch.get_rng_state()
        return x * masks[0]

    return Work(step, inputs=x)
