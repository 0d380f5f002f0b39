"""Means over sequences of different lengths."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
BATCH, LENGTH, N = 32, 48, 16


def operands():
    return torch.randn(BATCH, LENGTH, N), torch.randint(1, LENGTH + 1, (BATCH,))


@scenario.variant
def loop(lab):
    x, lengths = operands()
    return Work(
        lambda: torch.stack(
            [row[:length].mean(0) for row, length in zip(x, lengths.tolist(), strict=True)]
        ),
        inputs=(x, lengths),
    )


@scenario.variant
def masked(lab):
    x, lengths = operands()
    mask = torch.arange(LENGTH) < lengths[:, None]
    return Work(lambda: (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True), inputs=(x, mask))


@scenario.variant
def masked_in_the_step(lab):
    x, lengths = operands()
    positions = torch.arange(LENGTH)

    def step():
        padding = positions >= lengths[:, None]
        return x.masked_fill(padding[:, :, None], 0.0).sum(1) / lengths[:, None]

    return Work(step, inputs=(x, lengths))


@scenario.variant
def running_sums(lab):
    x, lengths = operands()
    rows = torch.arange(BATCH)
    return Work(lambda: x.cumsum(1)[rows, lengths - 1] / lengths[:, None], inputs=(x, lengths))
