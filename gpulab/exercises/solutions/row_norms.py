"""Row norms: one operation for all rows.

The loop starts ten operations for each row, so 512 rows are 5,120 operations, each of which costs
microseconds before it adds its first numbers. `rows.mean(dim=1, keepdim=True)` is the mean of every
row in one operation, and the shape that it keeps, (rows, 1), lets the subtraction find the mean of
its own row. Written like this, without a loop, nine operations are left:

    centred = rows - rows.mean(dim=1, keepdim=True)
    deviation = (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    return centred / deviation * weight + bias

Seven of those go over the whole matrix. Since layer norm is common, torch has one kernel for all of
it: it reads a row, keeps it in registers or cache, and writes it once. It subtracts the mean before
it squares, as the loop does: the mean of the squares minus the square of the mean would lose the
digits of rows that lie far from zero.
"""

import torch

EXERCISE = "row_norms"


def step(rows, weight, bias):
    """Returns the rows, each with mean 0 and standard deviation 1, times weight plus bias."""
    return torch.nn.functional.layer_norm(rows, rows.shape[1:], weight, bias, eps=1e-5)
