"""What steps change beside their output: nobody is accused of what depends on the number of steps."""

import pytest
import torch
from checker_bench import Bench, N
from torch import nn

from gpulab.scenario import Work


def mean_over_all_steps():
    norm, x = nn.BatchNorm1d(N, momentum=None), torch.randn(N, N)
    return Work(lambda: norm(x), inputs=x)


def ring():
    """Each step writes the next place."""
    x, history, places = torch.randn(N, N), torch.zeros(64), []

    def step():
        loss = (x @ x).square().mean()
        history[len(places) % 64] = loss
        places.append(loss)
        return loss

    return Work(step, inputs=x)


def buffers_in_turn():
    x, buffers = torch.randn(N, N), [torch.zeros(N, N), torch.zeros(N, N)]

    def step():
        buffers.reverse()
        buffers[0] += x
        return x @ x

    return Work(step, inputs=x)


def view_of_a_row():
    """One memory by two names, of which the second cannot be written to."""
    x, row = torch.randn(N, N), torch.zeros(1, N)
    rows = row.expand(N, N)

    def step():
        row.lerp_(x[:1], 0.5)
        return x - 0 * rows

    return Work(step, inputs=x)


@pytest.mark.parametrize("make_work", [mean_over_all_steps, ring, buffers_in_turn, view_of_a_row])
def test_the_same_code_leaves_the_same(make_work):
    bench = Bench()
    bench.check("baseline", make_work)
    assert bench.check("same", make_work).ok
    assert bench.codes == []
