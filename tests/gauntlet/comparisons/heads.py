"""Scores of several heads of attention."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
HEADS, LENGTH, WIDTH = 8, 48, 32


def operands():
    return torch.randn(HEADS, LENGTH, WIDTH), torch.randn(HEADS, LENGTH, WIDTH)


@scenario.variant
def loop(lab):
    q, k = operands()
    return Work(lambda: torch.stack([q[head] @ k[head].T for head in range(HEADS)]), inputs=(q, k))


@scenario.variant
def bmm(lab):
    q, k = operands()
    return Work(lambda: torch.bmm(q, k.transpose(1, 2)), inputs=(q, k))


@scenario.variant
def einsum(lab):
    q, k = operands()
    return Work(lambda: torch.einsum("hqd,hkd->hqk", q, k), inputs=(q, k))


@scenario.variant
def baddbmm(lab):
    q, k = operands()
    zeros = torch.zeros(HEADS, LENGTH, LENGTH)
    return Work(lambda: torch.baddbmm(zeros, q, k.mT, beta=0), inputs={"queries": q, "keys": k})
