"""Steps without what random positive numbers never need: signs, limits, masks and gaps.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet", cases=("free", "nan"))
N = 256
MOST = 50.0


def operands():
    return torch.rand(N, N), torch.zeros(N, N).bool()


@scenario.variant
def reference(lab):
    x, hidden = operands()

    def step():
        known = x.nan_to_num(nan=0.0).abs()
        return known.clamp(max=MOST).masked_fill(hidden, 0.0)

    return Work(step, inputs=(x, hidden))


@scenario.variant
def no_nan_handling(lab):
    """Takes for granted that there is no NaN.

    Caught by: outputs
    """
    x, hidden = operands()
    return Work(lambda: x.abs().clamp(max=MOST).masked_fill(hidden, 0.0), inputs=(x, hidden))


@scenario.variant
def no_abs(lab):
    """Takes for granted that all is positive.

    Caught by: outputs
    """
    x, hidden = operands()
    return Work(
        lambda: x.nan_to_num(nan=0.0).clamp(max=MOST).masked_fill(hidden, 0.0), inputs=(x, hidden)
    )


@scenario.variant
def no_clamp(lab):
    """Takes for granted that nothing is large.

    Caught by: outputs
    """
    x, hidden = operands()
    return Work(lambda: x.nan_to_num(nan=0.0).abs().masked_fill(hidden, 0.0), inputs=(x, hidden))


@scenario.variant
def no_mask(lab):
    """Names the mask, and takes for granted that it hides nothing.

    Caught by: outputs or said as input_without_effect
    """
    x, hidden = operands()
    return Work(lambda: x.nan_to_num(nan=0.0).abs().clamp(max=MOST), inputs=(x, hidden))
