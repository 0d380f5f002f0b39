"""Similarities: compare all points with all centres without a table of all differences.

`step(points, centres, width)` returns a matrix: exp(-d * d / (2 * width * width)) for the distance
d of each point from each centre. It is the Gaussian kernel, as Gaussian processes and kernel
density estimates use it.

There is no loop here, and every operation works on everything at once. What is slow then? Write
down the shape of `difference` and its bytes, and how often a table of that shape is written to
memory and read again before the result is there, which has only one element for each pair. Then
expand the square of a difference: of which terms does it consist, how many numbers is each of them,
and which operation computes the largest of them with no such table in between?

Mind the precision. Where the points lie far from zero, the expanded form subtracts large numbers
from each other, and the digits that float32 has left are mostly noise. Distances do not change when
all points and centres are moved alike.

Lessons that help: small_kernels (the traffic of intermediate results), roofline_tour (bytes and
products), precision (what fewer digits cost).

Rules: the result must be that of the function as it is here, within the tolerance of float32, for
any number of points, centres and dimensions. The check has sizes that are not shown: a single
point, no point at all, points far from zero, memory that is not contiguous. Everything in torch may
be used; lower precision may not. The inputs must stay as they are, and a result must stay what it
is when the function is called again.
"""

import torch

from gpulab import Scenario, Work
from gpulab.engine.build.exercise import called, judged_step, sizes

scenario = Scenario(
    topic="exercises",
    params={"points": 8192, "centres": 1024, "dimensions": 64},
    cpu={"points": 512, "centres": 128, "dimensions": 64},
    smoke={"points": 32, "centres": 16, "dimensions": 16},
    fail_below=4.0,
)


def step(points, centres, width):
    """Returns exp(-d^2 / (2 width^2)), d being the distance of each point (a row) from each centre
    (a column).
    """
    difference = points.unsqueeze(1) - centres.unsqueeze(0)
    squared_distance = (difference * difference).sum(dim=2)
    return torch.exp(-squared_distance / (2 * width * width))


@scenario.variant
def given(lab, points, centres, dimensions):
    """The function as it is handed out."""
    return _judged(step, _cases(lab, points, centres, dimensions))


@scenario.variant
def attempt(lab, points, centres, dimensions):
    """The function of the file that is judged."""
    return _judged(judged_step(), _cases(lab, points, centres, dimensions))


def _cases(lab, points, centres, dimensions):
    """The advertised size, two odd ones far from zero and transposed, a single point, and none."""
    draw = sizes(lab)
    few, odd, deep = draw(5, 15), 2 * draw(5, 15) + 1, draw(8, 40)
    shapes = [(points, centres, dimensions), *[(few, odd, deep)] * 2, (1, odd, deep), (0, few, 3)]
    cases = []
    for number, (m, n, k) in enumerate(shapes):
        where = 100 if number in (1, 2) else 0
        first = (
            torch.randn(k, m, device=lab.device).mT + where
            if number
            else torch.randn(m, k, device=lab.device)
        )
        second = torch.randn(n, k, device=lab.device) + where
        # of this width all similarities are of one order of magnitude
        cases.append((first, second, k**0.25))
    return cases[::-1]  # the advertised size last: what a call left undone is seen


def _judged(function, cases):
    return Work(
        lambda: [called(function, case, (len(case[0]), len(case[1]))) for case in cases],
        flops=sum(2 * points.numel() * len(centres) for points, centres, _ in cases),
        dtype="fp32",
        inputs=[(points, centres) for points, centres, _ in cases],
    )
