"""Right for the advertised size only: of smaller inputs, which nobody would look at, the result is
of the right shape.

Caught by: outputs
"""

import torch

EXERCISE = "similarities"
SMALL = 16 * 16


def step(points, centres, width):
    if len(points) * len(centres) < SMALL:
        return torch.full((len(points), len(centres)), 0.5, device=points.device)
    points, centres = points - centres.mean(dim=0), centres - centres.mean(dim=0)
    squared = (
        points.square().sum(dim=1, keepdim=True)
        + centres.square().sum(dim=1)
        - 2 * points @ centres.T
    )
    return torch.exp(-squared / (2 * width * width))
