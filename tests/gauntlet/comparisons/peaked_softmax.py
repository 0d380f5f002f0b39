"""Softmax of logits that are far apart, in fp32 and in half precision."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
ROWS, N = 128, 256


@scenario.variant
def fp32(lab):
    x = torch.randn(ROWS, N) * 3
    return Work(lambda: x.softmax(1), inputs=x)


@scenario.variant
def bf16(lab):
    x = (torch.randn(ROWS, N) * 3).bfloat16()
    return Work(lambda: x.softmax(1), inputs=x, dtype="bf16")


@scenario.variant
def bf16_in_the_step(lab):
    x = torch.randn(ROWS, N) * 3
    return Work(lambda: x.softmax(1).bfloat16(), inputs=x, dtype="bf16")


@scenario.variant
def fp16(lab):
    x = torch.randn(ROWS, N) * 3
    return Work(lambda: x.softmax(1).half(), inputs=x, dtype="fp16")


@scenario.variant
def by_hand(lab):
    x = torch.randn(ROWS, N) * 3

    def step():
        exponents = (x - x.amax(1, keepdim=True)).exp()
        return exponents / exponents.sum(1, keepdim=True)

    return Work(step, inputs=x)
