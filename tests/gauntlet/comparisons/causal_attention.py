"""Attention to what came before."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
HEADS, LENGTH, WIDTH = 4, 64, 32
attention = torch.nn.functional.scaled_dot_product_attention


def operands():
    return [torch.randn(1, HEADS, LENGTH, WIDTH) for _ in range(3)]


@scenario.variant
def with_a_mask(lab):
    q, k, v = operands()
    mask = torch.ones(LENGTH, LENGTH).tril().bool()
    return Work(lambda: attention(q, k, v, attn_mask=mask), inputs=(q, k, v, mask))


@scenario.variant
def causal_flag(lab):
    q, k, v = operands()
    return Work(lambda: attention(q, k, v, is_causal=True), inputs=(q, k, v))


@scenario.variant
def with_a_bias(lab):
    q, k, v = operands()
    bias = torch.zeros(LENGTH, LENGTH).masked_fill(
        torch.ones(LENGTH, LENGTH).triu(1).bool(), float("-inf")
    )
    return Work(lambda: attention(q, k, v, attn_mask=bias), inputs=(q, k, v, bias))


@scenario.variant
def by_hand(lab):
    q, k, v = operands()
    later = torch.ones(LENGTH, LENGTH).triu(1).bool()

    def step():
        scores = q @ k.transpose(-1, -2) / WIDTH**0.5
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v

    return Work(step, inputs=(q, k, v))


@scenario.variant
def queries_in_pieces(lab):
    """Keys that come later are not even read."""
    q, k, v = operands()
    mask = torch.ones(LENGTH, LENGTH).tril().bool()

    def step():
        return torch.cat(
            [
                attention(
                    q[:, :, at : at + 16],
                    k[:, :, : at + 16],
                    v[:, :, : at + 16],
                    mask[at : at + 16, : at + 16],
                )
                for at in range(0, LENGTH, 16)
            ],
            2,
        )

    return Work(step, inputs=(q, k, v))
