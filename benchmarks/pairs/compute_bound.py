"""A product of matrices in one call against the same in two halves of the inner dimension; and one
of 5 % more.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("pairs", params={"size": 4096, "inner": 3200}, cpu={"size": 384, "inner": 400})


@scenario.variant
def baseline(lab, size, inner):
    """One call."""
    return _product(lab, size, inner, inner)


@scenario.variant
def twin(lab, size, inner):
    """The same code once more."""
    return _product(lab, size, inner, inner)


@scenario.variant
def unlike(lab, size, inner):
    """Two calls, each over half of the inner dimension."""
    left, right, out = _matrices(lab, size, inner, inner)
    half = inner // 2

    def step():
        torch.mm(left[:, :half], right[:half], out=out)
        return out.addmm_(left[:, half:], right[half:])

    return Work(step, inputs=(left, right), output=out)


@scenario.variant
def slower(lab, size, inner):
    """Exactly 5 % more multiplications: the inner dimension goes on, in zeros."""
    return _product(lab, size, inner, inner * 21 // 20)


def _product(lab, size, inner, padded):
    left, right, out = _matrices(lab, size, inner, padded)
    return Work(
        lambda: torch.mm(left, right, out=out), inputs=(left[:, :inner], right[:inner]), output=out
    )


def _matrices(lab, size, inner, padded):
    left = torch.zeros(size, padded, device=lab.device)
    right = torch.zeros(padded, size, device=lab.device)
    left[:, :inner] = torch.rand(size, inner, device=lab.device)
    right[:inner] = torch.rand(inner, size, device=lab.device)
    return left, right, torch.empty(size, size, device=lab.device)
