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


def view_of_a_row():
    """One memory by two names, of which the second cannot be written to."""
    x, row = torch.randn(N, N), torch.zeros(1, N)
    rows = row.expand(N, N)

    def step():
        row.lerp_(x[:1], 0.5)
        return x - 0 * rows

    return Work(step, inputs=x)


@pytest.mark.parametrize("make_work", [mean_over_all_steps, ring, view_of_a_row])
def test_the_same_code_leaves_the_same(make_work):
    bench = Bench()
    bench.check("baseline", make_work)
    assert bench.check("same", make_work).ok
    assert bench.codes == []


def normalised(*, tracks=True, names="all", momentum=0.1):
    """With running statistics, or without; what is named as state."""

    def make_work():
        norm = nn.BatchNorm1d(N, track_running_stats=tracks, momentum=momentum)
        x = torch.randn(N, N)
        state = {"all": norm, "weights": [norm.weight, norm.bias], "none": None}[names]
        return Work(lambda: norm(x), inputs=x, state=state)

    return make_work


@pytest.mark.parametrize("names", ["all", "weights", "none"])
@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_state_of_the_baseline_that_a_variant_has_not_is_said(names, momentum):
    bench = Bench()
    bench.check("baseline", normalised(momentum=momentum))
    bench.check("same", normalised(names=names, momentum=momentum))
    assert bench.codes == []
    bench.check("suspect", normalised(names=names, tracks=False))
    assert bench.codes == [("effects_not_left", "suspect")]


def decoding(*, is_warm=False, is_named=True):
    """A cache that each step writes, as a graph's capture has done once before."""

    def make_work():
        x, cache = torch.randn(N, N), torch.zeros(4, N, N)

        def step():
            cache[1] = x @ x
            return cache.sum(0) + x

        if is_warm:
            step()
        return Work(step, inputs=x, state=cache if is_named else None)

    return make_work


@pytest.mark.parametrize("is_named", [True, False])
def test_a_cache_that_is_written_with_what_it_has_is_written(is_named):
    bench = Bench()
    bench.check("baseline", decoding())
    assert bench.check("graphed", decoding(is_warm=True, is_named=is_named)).ok
    assert bench.codes == []
