"""A speedup beside earlier ones: their range, and whether its interval is beyond what they differ
among themselves.
"""

import pytest

from gpulab.stats.comparison import FEWEST_TO_JUDGE, Earlier, earlier_of

SIX = [1.6, 1.52, 1.69, 1.55, 1.58, 1.66]


def test_without_earlier_runs_there_is_nothing_to_say():
    assert earlier_of([], (1.5, 1.6)) is None


def test_the_range_is_that_of_all_earlier_runs():
    assert earlier_of([1.5], (1.5, 1.6)) == Earlier(runs=1, low=1.5, high=1.5)
    assert earlier_of(SIX, None) == Earlier(runs=6, low=1.52, high=1.69)


@pytest.mark.parametrize(
    ("interval", "outside"),
    [
        ((1.6, 1.62), False),
        ((1.68, 1.9), False),
        ((1.70, 1.75), False),
        ((1.80, 1.82), True),
        ((1.3, 1.42), True),
    ],
)
def test_a_result_is_outside_where_its_interval_is_beyond_half_of_the_range_again(
    interval, outside
):
    assert earlier_of(SIX, interval).outside == outside


def test_few_runs_say_nothing_of_the_next():
    assert not earlier_of(SIX[: FEWEST_TO_JUDGE - 1], (9.0, 9.1)).outside


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_it_is_the_same_on_any_scale(scale):
    speedups = [scale * speedup for speedup in SIX]
    assert earlier_of(speedups, (1.8 * scale, 1.82 * scale)).outside
    assert not earlier_of(speedups, (1.7 * scale, 1.75 * scale)).outside
