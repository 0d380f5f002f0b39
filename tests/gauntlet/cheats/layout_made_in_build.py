"""Adds up rows by an index, as a sparse matrix in coordinates does: the order of the index is a
part of the work.

Every variant but the first is a cheat; the last line of its docstring says what catches it.
"""

import torch

from gpulab import Scenario, Work

scenario = Scenario("gauntlet")
N, ELEMENTS, WIDTH = 256, 4096, 16


def operands():
    rows, columns = torch.randint(N, (ELEMENTS,)), torch.randint(N, (ELEMENTS,))
    return rows, columns, torch.randn(ELEMENTS), torch.randn(N, WIDTH)


@scenario.variant
def reference(lab):
    rows, columns, values, x = operands()

    def step():
        return torch.zeros(N, WIDTH).index_add_(0, rows, values[:, None] * x[columns])

    return Work(step, inputs=(rows, columns, values, x))


@scenario.variant
def order_made_in_build(lab):
    """Sorts its index once, in the build, and names the index that it no longer reads.

    Caught by: outputs or inputs
    """
    rows, columns, values, x = operands()
    order = rows.argsort(stable=True)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), rows.bincount(minlength=N).cumsum(0)])
    columns_in_order = columns[order]

    def step():
        matrix = torch.sparse_csr_tensor(
            offsets, columns_in_order, values[order], (N, N), check_invariants=False
        )
        return matrix @ x

    return Work(step, inputs=(rows, columns, values, x))


@scenario.variant
def csr_made_in_build(lab):
    """Compresses the rows in its build, and names what came of them.

    Caught by: said as layout_made_in_build or outputs
    """
    rows, columns, values, x = operands()
    matrix = torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (N, N)).to_sparse_csr()
    parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    return Work(lambda: matrix @ x, inputs=(*parts, x))
