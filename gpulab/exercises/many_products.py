"""Many products: multiply many pairs of small matrices without a loop over the pairs.

`step(left, right, scale)` takes three stacks of equal length, multiplies each matrix of the left
stack with that of the same place in the right one, and scales the product by a number of its own.

A product of two 16 x 16 matrices is 8,192 floating-point operations. A core does those in less than
a microsecond. On a GPU one such product keeps one multiprocessor busy at best, and the others, a
hundred and more, have nothing to do. What do Python and torch do between two products? Which
operation of torch takes a stack of matrices, and what shape must `scale` have so that each matrix
meets its own number? The scaling may be done before the product or after it: on which side are
there fewer numbers?

Lessons that help: batched_matmul (the same question, measured), optimizer_step (a loop over
tensors, and the same without it).

Rules: the result must be that of the function as it is here, within the tolerance of float32, for
stacks of any length and matrices of any shape. The check has sizes that are not shown: matrices
that are not square, a stack of one, an empty stack, memory that is not contiguous. Everything in
torch may be used; lower precision may not. The inputs must stay as they are, and a result must stay
what it is when the function is called again.
"""

import torch

from gpulab import Scenario, Work
from gpulab.engine.build.exercise import called, judged_step, sizes

scenario = Scenario(
    topic="exercises",
    params={"count": 2048, "size": 32},
    cpu={"count": 1024, "size": 16},
    smoke={"count": 64, "size": 8},
    fail_below=5.0,
)


def step(left, right, scale):
    """Returns scale[i] * left[i] @ right[i] for every i, as one stack."""
    result = left.new_empty(len(left), left.shape[1], right.shape[2])
    for i in range(len(left)):
        result[i] = scale[i] * (left[i] @ right[i])
    return result


@scenario.variant
def given(lab, count, size):
    """The function as it is handed out."""
    return _judged(step, _cases(lab, count, size))


@scenario.variant
def attempt(lab, count, size):
    """The function of the file that is judged."""
    return _judged(judged_step(), _cases(lab, count, size))


def _cases(lab, count, size):
    """The advertised size, two stacks of an odd size with transposed right matrices, a stack of
    one, and none.
    """
    draw = sizes(lab)
    few, rows, inner, columns = draw(3, 9), draw(2, 20), draw(2, 40), draw(2, 20)
    stacks = [
        (count, size, size, size),
        *[(few, rows, inner, columns)] * 2,
        (1, columns, inner, 1),
        (0, rows, 3, 5),
    ]
    return [
        (
            torch.randn(number, m, k, device=lab.device),
            torch.randn(number, k, n, device=lab.device)
            if number == count
            else _transposed(lab, number, k, n),
            torch.randn(number, device=lab.device),
        )
        for number, m, k, n in stacks
    ][::-1]  # the advertised size last: what a call left undone is seen


def _transposed(lab, number, rows, columns):
    return torch.randn(number, columns, rows, device=lab.device).mT


def _judged(function, cases):
    return Work(
        lambda: [
            called(function, case, (len(case[0]), case[0].shape[1], case[1].shape[2]))
            for case in cases
        ],
        flops=sum(2 * left.numel() * right.shape[2] for left, right, _ in cases),
        bytes=sum(
            left.nbytes + right.nbytes + 4 * len(left) * left.shape[1] * right.shape[2]
            for left, right, _ in cases
        ),
        dtype="fp32",
        inputs=cases,
    )
