"""Honest twins of `cheats/layout_made_in_build.py`: the order is made in each step."""

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
    rows, columns, values, x = operands()

    def step():
        order = rows.argsort(stable=True)
        lengths = rows.bincount(minlength=N)
        return torch.segment_reduce(
            values[order, None] * x[columns[order]], "sum", lengths=lengths, initial=0.0
        )

    return Work(step, inputs=(rows, columns, values, x))


@scenario.variant
def csr_made_in_build(lab):
    rows, columns, values, x = operands()

    def step():
        matrix = torch.sparse_coo_tensor(
            torch.stack([rows, columns]), values, (N, N), check_invariants=False
        )
        return matrix.to_sparse_csr() @ x

    return Work(step, inputs=(rows, columns, values, x))
