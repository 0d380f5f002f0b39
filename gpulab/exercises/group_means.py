"""Group means: average the rows of each group without reading a single label on the host.

`step(labels, rows, groups)` returns a table with one row for each group: the mean of all rows that
have its label, and zeros where none has it.

To add a row in the right place, Python has to know its label, and `.item()` brings the label to the
host. On a GPU the host waits there until all that it has started is done, and only then starts the
next operation: a thousand labels are a thousand such waits, with a few tiny operations between
them. On a CPU there is nothing to wait for, and each label still costs several calls of Python and
torch. Who else could look the label up? Which operations of torch take a tensor of places, and add
up where a place comes more than once? Does `sums[labels] += rows`?

Lessons that help: sync_every_step (what it costs to read one number), batched_matmul (one call in
place of many).

Rules: the result must be that of the function as it is here, within the tolerance of float32, for
any number of rows, columns and groups. The check has sizes that are not shown: groups without rows,
a single row, no rows at all, memory that is not contiguous. Everything in torch may be used; lower
precision may not. The inputs must stay as they are, and a result must stay what it is when the
function is called again.
"""

import torch

from gpulab import Scenario, Work
from gpulab.engine.build.exercise import called, judged_step, sizes

scenario = Scenario(
    topic="exercises",
    params={"count": 1024, "columns": 512, "groups": 64},
    cpu={"count": 1024, "columns": 64, "groups": 32},
    smoke={"count": 64, "columns": 8, "groups": 8},
    fail_below=20.0,
)


def step(labels, rows, groups):
    """Returns the mean of the rows of each group, zeros for a group without rows."""
    sums = rows.new_zeros(groups, rows.shape[1])
    counts = rows.new_zeros(groups)
    for i in range(len(rows)):
        group = labels[i].item()
        sums[group] += rows[i]
        counts[group] += 1
    return sums / counts.clamp(min=1).unsqueeze(1)


@scenario.variant
def given(lab, count, columns, groups):
    """The function as it is handed out."""
    return _judged(step, _cases(lab, count, columns, groups))


@scenario.variant
def attempt(lab, count, columns, groups):
    """The function of the file that is judged."""
    return _judged(judged_step(), _cases(lab, count, columns, groups))


def _cases(lab, count, columns, groups):
    """The advertised size, two odd ones with more groups than rows, a single row, and none."""
    draw = sizes(lab)
    few, odd, many = draw(5, 15), 2 * draw(3, 30) + 1, draw(16, 40)
    shapes = [(count, columns, groups), *[(few, odd, many)] * 2, (1, few, 3), (0, odd, 4)]
    return [
        (
            torch.rand(number, device=lab.device),
            torch.randn(wide, number, device=lab.device).mT,
            number_of_groups,
        )
        if number < count
        else (
            torch.rand(number, device=lab.device),
            torch.randn(number, wide, device=lab.device),
            number_of_groups,
        )
        for number, wide, number_of_groups in shapes
    ][::-1]  # the advertised size last: what a call left undone is seen


def _judged(function, cases):
    def step():
        # Labels are made anew of numbers, which the lab can change: whole numbers it would leave as
        # they are.
        return [
            called(
                function,
                ((draws * groups).long().clamp_(0, groups - 1), rows, groups),
                (groups, rows.shape[1]),
            )
            for draws, rows, groups in cases
        ]

    return Work(
        step,
        bytes=sum(rows.nbytes + 4 * groups * rows.shape[1] for _, rows, groups in cases),
        dtype="fp32",
        inputs=[(draws, rows) for draws, rows, _ in cases],
    )
