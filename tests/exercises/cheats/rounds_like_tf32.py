"""Reduced precision: the operands of the product have the ten bits of tf32, and everything else is
float32.

Caught by: outputs
"""

import torch

EXERCISE = "similarities"


def step(points, centres, width):
    points, centres = points - centres.mean(dim=0), centres - centres.mean(dim=0)
    squares = points.square().sum(dim=1, keepdim=True) + centres.square().sum(dim=1)
    return torch.exp((squares - 2 * rounded(points) @ rounded(centres).T) / (-2 * width * width))


def rounded(tensor):
    return (tensor.contiguous().view(torch.int32).add(0x1000).bitwise_and(~0x1FFF)).view(
        torch.float32
    )
