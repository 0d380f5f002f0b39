"""A matrix of which one element in fifty is not zero."""

import torch

from gpulab import Scenario, Work

scenario = Scenario("comparisons")
N, COLUMNS = 384, 16


def operands():
    matrix = torch.randn(N, N) * (torch.rand(N, N) < 0.02)
    return matrix, torch.randn(N, COLUMNS)


@scenario.variant
def dense(lab):
    matrix, x = operands()
    return Work(lambda: matrix @ x, inputs=(matrix, x))


@scenario.variant
def csr(lab):
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(
        lambda: rows @ x, inputs=(rows.crow_indices(), rows.col_indices(), rows.values(), x)
    )


@scenario.variant
def csr_of_named_values(lab):
    """Names what has values."""
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(lambda: rows @ x, inputs=(rows.values(), x))


@scenario.variant
def coordinates(lab):
    matrix, x = operands()
    elements = matrix.to_sparse_coo().coalesce()
    return Work(lambda: elements @ x, inputs=(elements.indices(), elements.values(), x))


@scenario.variant
def sparse_tensor_named(lab):
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(lambda: rows @ x, inputs=(rows, x))


@scenario.variant
def nothing_named(lab):
    matrix, x = operands()
    rows = matrix.to_sparse_csr()
    return Work(lambda: rows @ x)
