"""A tridiagonal matrix as it is, and by its diagonals."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N = 768


def operands():
    return torch.randn(N), torch.randn(N - 1), torch.randn(N - 1), torch.randn(N)


@scenario.variant
def dense(lab):
    middle, above, below, x = operands()
    matrix = middle.diag() + above.diag(1) + below.diag(-1)
    return Work(lambda: matrix @ x, inputs=(matrix, x))


@scenario.variant
def by_diagonals(lab):
    middle, above, below, x = operands()

    def step():
        out = middle * x
        out[:-1] += above * x[1:]
        out[1:] += below * x[:-1]
        return out

    return Work(step, inputs=(middle, above, below, x))


@scenario.variant
def csr(lab):
    middle, above, below, x = operands()
    matrix = (middle.diag() + above.diag(1) + below.diag(-1)).to_sparse_csr()
    return Work(lambda: matrix @ x, inputs=(matrix.values(), x))
