"""Changes its inputs: the rows are standardized where they lie, so that the next call finds nothing
to do.

Caught by: outputs
"""

EXERCISE = "row_norms"


def step(rows, weight, bias):
    if len(rows) and rows[0].mean().abs() > 1e-3:
        rows -= rows.mean(dim=1, keepdim=True)
        rows /= (rows.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    return rows * weight + bias
