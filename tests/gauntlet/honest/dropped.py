"""Honest twins of `cheats/dropped.py`: the same by other operations."""

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
    x, hidden = operands()
    return Work(
        lambda: torch.where(x.isnan(), 0.0, x).abs().clamp(max=MOST).masked_fill(hidden, 0.0),
        inputs=(x, hidden),
    )


@scenario.variant
def no_abs(lab):
    x, hidden = operands()

    def step():
        known = x.nan_to_num(nan=0.0)
        return torch.maximum(known, -known).clamp(max=MOST).masked_fill(hidden, 0.0)

    return Work(step, inputs=(x, hidden))


@scenario.variant
def no_clamp(lab):
    x, hidden = operands()
    most = torch.tensor(MOST)
    return Work(
        lambda: torch.minimum(x.nan_to_num(nan=0.0).abs(), most).masked_fill(hidden, 0.0),
        inputs=(x, hidden),
    )


@scenario.variant
def no_mask(lab):
    x, hidden = operands()
    return Work(
        lambda: torch.where(hidden, 0.0, x.nan_to_num(nan=0.0).abs().clamp(max=MOST)),
        inputs=(x, hidden),
    )
