"""The interval of a median, against exact sums and by its coverage."""

import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.stats.statistics import (
    FEWEST,
    MOST_CORRELATION,
    Interval,
    as_speedup,
    correlated_interval,
    log_ratios,
    median_interval,
    positive_correlation,
    ranks,
)

FLOATS = st.floats(-1e6, 1e6)


def expected_ranks(n, confidence):
    """The largest r with P(B < r) + P(B > n - r) <= 1 - confidence, B ~ Binomial(n, 1/2), in whole
    numbers.
    """
    most = (1 - Fraction(str(confidence))) * 2**n / 2
    r, count, below = -1, 1, 1  # of n values taken r + 1 at a time, and of all fewer
    while below <= most:
        r += 1
        count = count * (n - r) // (r + 1)
        below += count
    return None if r < 0 else (r, n - 1 - r)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_ranks_are_the_binomial_quantiles(confidence):
    numbers = range(1, 300, 7)
    found = {n: ranks(n, confidence) for n in numbers}
    assert found == {n: expected_ranks(n, confidence) for n in numbers}


@pytest.mark.parametrize(
    "n", [511, 512, 513, 514, 1000, 4321, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_ranks_of_many_values_are_summed_in_floats_to_the_same(n):
    assert ranks(n) == expected_ranks(n, 0.99)


def test_eight_values_are_the_fewest_that_carry_99_percent_and_give_their_range():
    assert FEWEST == 8
    values = [5.0, 1.0, 4.0, 2.0, 8.0, 7.0, 3.0, 6.0]
    assert median_interval(values) == Interval(4.5, 1.0, 8.0, 8)
    assert median_interval(values[1:]) is None
    assert median_interval([]) is None


@pytest.mark.parametrize("draw", [random.gauss, random.lognormvariate], ids=["normal", "skewed"])
@pytest.mark.parametrize("n", [8, 20, 60])
def test_the_interval_covers_the_median_at_least_as_often_as_it_says(draw, n):
    random.seed(1)
    median = 0.0 if draw is random.gauss else 1.0
    trials = 3000
    intervals = (median_interval([draw(0, 1) for _ in range(n)]) for _ in range(trials))
    missed = sum(not interval.low <= median <= interval.high for interval in intervals)
    # At most 1 %; four standard errors of that are 0.7 points.
    assert missed / trials <= 0.01 + 0.0073


@given(st.lists(FLOATS, min_size=8, max_size=60))
def test_the_interval_holds_the_median_and_ignores_order(values):
    interval = median_interval(values)
    assert interval.low <= interval.median <= interval.high
    assert median_interval(sorted(values, reverse=True)) == interval


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e-6, 1)), min_size=8, max_size=30))
def test_swapping_the_sides_inverts_the_speedup(pairs):
    forward = median_interval(log_ratios([a for a, _ in pairs], [b for _, b in pairs]))
    backward = median_interval(log_ratios([b for _, b in pairs], [a for a, _ in pairs]))
    assert (backward.low, backward.median, backward.high) == pytest.approx(
        (-forward.high, -forward.median, -forward.low)
    )
    speedup, inverse = as_speedup(forward), as_speedup(backward)
    assert speedup.low <= speedup.median <= speedup.high
    assert (inverse.low, inverse.median) == pytest.approx((1 / speedup.high, 1 / speedup.median))


def test_ratios_need_two_of_each_pair():
    with pytest.raises(ValueError, match="argument"):
        log_ratios([1.0, 2.0], [1.0])


def autoregressive(draw, n, correlation):
    """Normal values around 0, each with this correlation with the one before."""
    value = draw.gauss(0, 1)
    values = []
    for _ in range(n):
        values.append(value)
        value = correlation * value + math.sqrt(1 - correlation**2) * draw.gauss(0, 1)
    return values


def misses(interval_of, correlation, n, trials=3000):
    draw = random.Random(7)
    intervals = (interval_of(autoregressive(draw, n, correlation)) for _ in range(trials))
    return sum(not interval.low <= 0 <= interval.high for interval in intervals) / trials


@pytest.mark.parametrize("n", [8, 10, 16])
def test_independent_values_are_missed_no_more_often_than_promised(n):
    assert misses(correlated_interval, 0.0, n) <= 0.012


@pytest.mark.parametrize("n", [8, 16, 32])
@pytest.mark.parametrize("correlation", [0.3, 0.7])
def test_correlation_costs_less_than_it_costs_an_interval_that_ignores_it(n, correlation):
    aware, unaware = (
        misses(method, correlation, n) for method in (correlated_interval, median_interval)
    )
    assert aware < 0.75 * unaware
    assert aware <= 0.1


@given(st.lists(FLOATS, min_size=8, max_size=40))
def test_correlation_only_ever_widens(values):
    wide, plain = correlated_interval(values), median_interval(values)
    assert wide.median == plain.median
    slack = 1e-9 * max(map(abs, values))
    assert wide.low <= plain.low + slack
    assert wide.high >= plain.high - slack
    assert 0.0 <= positive_correlation(values) <= MOST_CORRELATION


def test_what_drifts_is_correlated_and_what_alternates_is_not():
    assert positive_correlation([float(n) for n in range(20)]) == MOST_CORRELATION
    assert positive_correlation([float(n % 2) for n in range(20)]) == 0.0
    assert positive_correlation([1.0] * 20) == 0.0
