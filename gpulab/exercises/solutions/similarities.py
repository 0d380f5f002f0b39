"""Similarities: the square of a difference, expanded, is a product of matrices.

The table of differences has points x centres x dimensions elements. It is written once, read for
the squares, which are as large, and those are read for the sums: four passes over a table that is
`dimensions` times the result. Expanded,

    (p - c)^2 = p^2 + c^2 - 2 p c

the first two terms are one number for each point and each centre, and the third, for all pairs, is
one product of matrices. It does as many multiplications, in blocks that stay in caches and
registers, and writes the result only.

The price is cancellation: 100 away from zero in each of 32 dimensions the terms are 320,000 each,
the square of the distance is about 64, and float32 has 7 digits. So the centres' mean is subtracted
from both first, which changes no distance. (Distances of points that are close to each other, but
not to the mean, still lose digits: then the direct form is the right one, as in torch.cdist with
compute_mode="donot_use_mm_for_euclid_dist", which keeps no table either.)

`addmm` applies the factor and adds the first two terms within the product, and `exp_` works where
the result lies.
"""

import torch

EXERCISE = "similarities"


def step(points, centres, width):
    """Returns exp(-d^2 / (2 width^2)), d being the distance of each point (a row) from each centre
    (a column).
    """
    middle = centres.mean(dim=0)
    points, centres = points - middle, centres - middle
    factor = -1 / (2 * width * width)
    of_points = points.square().sum(dim=1, keepdim=True) * factor
    of_centres = centres.square().sum(dim=1) * factor
    return torch.addmm(of_points + of_centres, points, centres.T, alpha=-2 * factor).exp_()
