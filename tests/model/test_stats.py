"""The interval against scipy and by its coverage; the verdict by what its words promise."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as reference

from gpulab.model.compare import Epoch, compare, narrow, theta, verdict
from gpulab.model.stats import FEWEST, Interval, log_ratios, median_interval, ranks
from gpulab.model.telemetry import Window

FLOATS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize("n", range(1, 300, 7))
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_ranks_are_the_binomial_quantiles(n, confidence):
    # The largest r with P(B < r) + P(B > n - r) <= 1 - confidence, B ~ Binomial(n, 1/2), from scipy's quantile.
    r = int(reference.binom.ppf((1 - confidence) / 2, n, 0.5)) - 1
    while reference.binom.cdf(r + 1, n, 0.5) <= (1 - confidence) / 2:
        r += 1
    assert ranks(n, confidence) == (None if r < 0 else (r, n - 1 - r))


def test_eight_values_are_the_fewest_that_carry_99_percent_and_give_their_range():
    assert FEWEST == 8
    values = [5.0, 1.0, 4.0, 2.0, 8.0, 7.0, 3.0, 6.0]
    assert median_interval(values) == Interval(4.5, 1.0, 8.0, 8)
    assert median_interval(values[1:]) is None


@pytest.mark.parametrize("draw", [random.gauss, random.lognormvariate], ids=["normal", "skewed"])
@pytest.mark.parametrize("n", [8, 20, 60])
def test_the_interval_covers_the_median_at_least_as_often_as_it_says(draw, n):
    random.seed(1)
    true = 0.0 if draw is random.gauss else 1.0
    trials = 3000
    missed = 0
    for _ in range(trials):
        found = median_interval([draw(0, 1) for _ in range(n)])
        missed += not found.low <= true <= found.high
    # At most 1 %; four standard errors of that are 0.7 points.
    assert missed / trials <= 0.01 + 0.0073


@given(st.lists(FLOATS, min_size=8, max_size=60))
def test_the_interval_holds_the_median_and_ignores_order(values):
    found = median_interval(values)
    assert found.low <= found.median <= found.high
    assert median_interval(sorted(values, reverse=True)) == found


@given(st.lists(st.tuples(st.floats(1e-6, 1), st.floats(1e-6, 1)), min_size=8, max_size=30))
def test_swapping_the_sides_inverts_the_speedup(pairs):
    there = median_interval(log_ratios([a for a, _ in pairs], [b for _, b in pairs]))
    back = median_interval(log_ratios([b for _, b in pairs], [a for a, _ in pairs]))
    assert (back.low, back.median, back.high) == pytest.approx((-there.high, -there.median, -there.low))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.90, 0.95, "faster"),
        (1.05, 1.10, "slower"),
        (0.985, 1.019, "same"),
        (0.97, 1.0, "inconclusive"),
        (0.985, 0.995, "same"),
        (0.97, 0.995, "inconclusive"),
        (0.97, 0.989, "faster"),
    ],
)
def test_a_verdict_needs_the_whole_interval(low, high, expected):
    of = Interval(math.log((low + high) / 2), math.log(low), math.log(high), 20)
    assert verdict(of, 0.01) == expected


def epochs(ratio, n, rounds=5, spread=0.001, seed=0):
    draw = random.Random(seed)

    def one():
        return {"a": 1e-3, "b": 1e-3 * ratio * math.exp(draw.gauss(0, spread))}

    return [Epoch(tuple(one() for _ in range(rounds))) for _ in range(n)]


@given(st.floats(0.1, 10), st.floats(1e-7, 1))
def test_a_comparison_does_not_depend_on_the_unit_of_time(ratio, unit):
    first = compare(epochs(ratio, 10), "b", "a")
    scaled = [Epoch(tuple({k: v * unit for k, v in one.items()} for one in e.rounds)) for e in epochs(ratio, 10)]
    second = compare(scaled, "b", "a")
    assert second.verdict == first.verdict
    assert second.speedup == pytest.approx(first.speedup)
    assert first.speedup == pytest.approx(1 / ratio, rel=0.01)


def test_seven_epochs_are_inconclusive_however_clear_and_say_so():
    found = compare(epochs(0.5, 7), "b", "a")
    assert (found.verdict, found.speedup) == ("inconclusive", None)
    assert "needs 8" in found.reason


def test_pairs_of_one_build_carry_an_interval_only_where_builds_are_dear():
    assert compare(epochs(0.5, 1, rounds=20), "b", "a").speedup is None
    assert compare(epochs(0.5, 1, rounds=20), "b", "a", dear=True, floor=0.03).verdict == "faster"


def test_placement_within_an_epoch_does_not_narrow_the_interval():
    # Each epoch is off by its own placement; pooled pairs would call this with certainty.
    draw = random.Random(3)
    placed = []
    for _ in range(9):
        off = math.exp(draw.gauss(0, 0.05))
        placed.append(Epoch(tuple({"a": 1.0, "b": off} for _ in range(200))))
    assert theta(placed, "b", "a", dear=False).half_width > 0.03


def test_the_detectable_effect_is_the_floor_and_one_and_a_half_widths():
    found = compare(epochs(1.0, 20, spread=0.05), "b", "a")
    half = (math.log(found.high) - math.log(found.low)) / 2
    assert found.mde == pytest.approx(0.01 + 1.5 * half)
    assert found.verdict == "inconclusive"
    assert f"{found.mde:.1%}" in found.reason


def test_over_a_fifth_dropped_is_invalid():
    assert compare(epochs(0.5, 10), "b", "a", dropped=12).verdict == "faster"
    assert compare(epochs(0.5, 10), "b", "a", dropped=13).verdict == "invalid"


def test_narrow_looks_at_width_alone():
    assert narrow(epochs(0.5, 20), [("b", "a")], dear=False)
    assert narrow(epochs(1.0, 20), [("b", "a")], dear=False)
    assert not narrow(epochs(0.5, 20, spread=0.2), [("b", "a")], dear=False)
    assert not narrow(epochs(0.5, 5), [("b", "a")], dear=False)


def test_what_touches_a_window_is_left_out_and_that_is_worked_out_once():
    rounds = ({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 4.0})
    epoch = Epoch(rounds, ({"a": (0, 1), "b": (1, 2)}, {"a": (2, 3), "b": (3, 4)}))
    assert epoch.outside([Window(5, 6, "")]) is epoch
    windows = [Window(2.5, 2.7, ""), Window(5, 6, "")]
    part = epoch.outside(windows)
    assert part is epoch.outside(windows[:1])
    assert part.rounds == ({"a": 1.0, "b": 2.0}, {"b": 4.0})
    assert part.times("b").median == 3.0
    assert part.ratios("b", "a") is part.ratios("b", "a")
    assert len(part.ratios("b", "a").values) == 1
    assert part.times("c").values == ()
