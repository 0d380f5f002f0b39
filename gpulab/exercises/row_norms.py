"""Row norms: standardize every row of a matrix without a loop over the rows.

`step(rows, weight, bias)` subtracts the mean from each row, divides the row by its standard
deviation, then scales and shifts the columns. This is what layer norm computes.

How many operations does torch start for one row, and how many for the whole matrix? Starting one
costs microseconds, on a CPU in Python and torch, on a GPU in the launch of a kernel besides; the
numbers of one row are added up in much less. What would be left if each operation worked on all
rows at once: which argument of mean() says so, and what does keepdim=True do to the shape of its
result? Once that is fast: is there one operation that does all of it?

Lessons that help: batched_matmul (one call in place of many), optimizer_step (a loop over tensors,
and the same without it), small_kernels (one pass in place of several).

Rules: the result must be that of the function as it is here, within the tolerance of float32, for
matrices of any size. The check has sizes that are not shown: a single row, no rows at all, rows
that lie far from zero, memory that is not contiguous. Everything in torch may be used; lower
precision may not. The inputs must stay as they are, and a result must stay what it is when the
function is called again.
"""

import torch

from gpulab import Scenario, Work
from gpulab.engine.build.exercise import called, judged_step, sizes

scenario = Scenario(
    topic="exercises",
    params={"rows": 512, "columns": 8192},
    cpu={"rows": 512, "columns": 512},
    smoke={"rows": 64, "columns": 64},
    fail_below=10.0,
)


def step(rows, weight, bias):
    """Returns the rows, each with mean 0 and standard deviation 1, times weight plus bias."""
    result = torch.empty_like(rows)
    for i in range(len(rows)):
        centred = rows[i] - rows[i].mean()
        deviation = (centred.square().mean() + 1e-5).sqrt()
        result[i] = centred / deviation * weight + bias
    return result


@scenario.variant
def given(lab, rows, columns):
    """The function as it is handed out."""
    return _judged(step, _cases(lab, rows, columns))


@scenario.variant
def attempt(lab, rows, columns):
    """The function of the file that is judged."""
    return _judged(judged_step(), _cases(lab, rows, columns))


def _cases(lab, rows, columns):
    """The advertised size, two matrices of one odd size that are not contiguous, a single row, and
    none.
    """
    draw = sizes(lab)
    few, odd = draw(3, 9), 2 * draw(20, 90) + 1
    matrices = [
        torch.randn(rows, columns, device=lab.device) * 3 + 1,
        *(torch.randn(odd, few, device=lab.device).mT + 100 for _ in range(2)),  # far from zero
        torch.randn(1, draw(2, 200), device=lab.device) - 5,
        torch.randn(0, few, device=lab.device),
    ]
    return [
        (matrix, *_columns(lab, matrix.shape[1]), *_columns(lab, matrix.shape[1]))
        for matrix in matrices
    ][::-1]  # the advertised size last: what a call left undone is seen


def _columns(lab, count):
    yield torch.randn(count, device=lab.device)


def _judged(function, cases):
    return Work(
        lambda: [called(function, case, tuple(case[0].shape)) for case in cases],
        bytes=sum(2 * rows.nbytes for rows, _, _ in cases),
        dtype="fp32",
        inputs=cases,
    )
