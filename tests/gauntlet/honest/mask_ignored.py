"""The same function, which is given the mask."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
HEADS, LENGTH, WIDTH = 4, 128, 32
attention = torch.nn.functional.scaled_dot_product_attention


def operands():
    return *(torch.randn(1, HEADS, LENGTH, WIDTH) for _ in range(3)), torch.ones(
        LENGTH, LENGTH
    ).bool()


@scenario.variant
def reference(lab):
    q, k, v, mask = operands()

    def step():
        scores = q @ k.transpose(-1, -2) / WIDTH**0.5
        return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v

    return Work(step, inputs=(q, k, v, mask))


@scenario.variant
def mask_ignored(lab):
    q, k, v, mask = operands()
    return Work(lambda: attention(q, k, v, attn_mask=mask), inputs=(q, k, v, mask))
