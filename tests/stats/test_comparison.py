"""The verdict by what its words promise, and which pairs a job compares."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.jobs import Measure, ScenarioFile, VariantInfo
from gpulab.stats.comparison import (
    compare,
    is_settled,
    pairs_of,
)
from gpulab.stats.series import Epoch, EpochSeries
from gpulab.stats.statistics import Interval
from gpulab.stats.verdicts import verdict_of

PAIR = ("b", "a")


def compared(epochs, *, unit=1.0, **options):
    """The comparison of b against a in these epochs, each of a process of its own."""
    series = EpochSeries([PAIR])
    for epoch in epochs:
        series.add(
            Epoch([{name: time * unit for name, time in times.items()} for times in epoch.rounds])
        )
    theta = series[PAIR].interval()
    pairs, count = series[PAIR].count, len(series[PAIR].processes())
    return compare(PAIR, theta, pairs=pairs, units=count, **options)


def epochs(ratio, n, rounds=5, spread=0.001, seed=0):
    draw = random.Random(seed)
    return [
        Epoch(
            [
                {"a": 1e-3, "b": 1e-3 * ratio * math.exp(draw.gauss(0, spread))}
                for _ in range(rounds)
            ]
        )
        for _ in range(n)
    ]


def interval(epochs, key=PAIR):
    series = EpochSeries([key])
    for epoch in epochs:
        series.add(epoch)
    return series[key].interval()


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
    assert (
        verdict_of(Interval(math.log((low + high) / 2), math.log(low), math.log(high), 20))
        == expected
    )


@given(st.floats(0.1, 10), st.floats(1e-7, 1))
def test_a_comparison_does_not_depend_on_the_unit_of_time(ratio, unit):
    plain, scaled = compared(epochs(ratio, 10)), compared(epochs(ratio, 10), unit=unit)
    assert scaled.verdict == plain.verdict
    assert scaled.speedup.value == pytest.approx(plain.speedup.value)
    assert plain.speedup.value == pytest.approx(1 / ratio, rel=0.01)


def test_seven_processes_are_inconclusive_however_clear_and_the_reason_counts_them():
    comparison = compared(epochs(0.5, 7))
    assert (comparison.verdict, comparison.speedup, comparison.pairs) == ("inconclusive", None, 35)
    assert comparison.reason.code == "too_few_values"
    assert comparison.reason.values == {"count": 7, "unit": "processes", "needed": 8}


def test_epochs_of_one_process_carry_no_interval_however_many_they_are():
    def series_of(processes):
        series = EpochSeries([PAIR])
        for number, epoch in enumerate(epochs(0.5, 40)):
            series.add(Epoch(epoch.rounds, process=number * processes // 40))
        return series[PAIR]

    assert series_of(7).interval() is None
    assert series_of(8).interval().n == 8


def test_placement_within_an_epoch_does_not_narrow_the_interval():
    # Each epoch is off by its own placement; pooled pairs would call this with certainty.
    draw = random.Random(3)
    placed = [
        Epoch([{"a": 1.0, "b": offset}] * 200)
        for offset in (math.exp(draw.gauss(0, 0.05)) for _ in range(9))
    ]
    assert interval(placed).half_width > 0.03


def test_the_detectable_effect_is_the_floor_and_one_and_a_half_widths():
    comparison = compared(epochs(1.0, 20, spread=0.05))
    half = (math.log(comparison.speedup.high) - math.log(comparison.speedup.low)) / 2
    assert comparison.mde == pytest.approx(0.01 + 1.5 * half)
    assert comparison.verdict == "inconclusive"


def test_over_a_fifth_dropped_is_invalid():
    assert compared(epochs(0.5, 10), dropped=12).verdict == "faster"
    refused = compared(epochs(0.5, 10), dropped=13)
    assert (refused.verdict, refused.speedup, refused.mde) == ("invalid", None, None)
    assert refused.reason.values == {"dropped": 13, "pairs": 63}


def thetas(speedup, n, spread=0.0):
    draw = random.Random(5)
    return [-math.log(speedup) + draw.gauss(0, spread) for _ in range(n)]


def test_what_is_required_is_settled_by_looks_at_eight_sixteen_and_so_on():
    assert is_settled(thetas(1.5, 7), 1.2) is None
    assert is_settled(thetas(1.5, 8), 1.2) is True
    assert is_settled(thetas(1.1, 8), 1.2) is False
    assert is_settled([*thetas(1.5, 4), *thetas(1.1, 4)], 1.2) is None
    assert is_settled([*thetas(1.5, 8), *thetas(1.0, 7)], 1.2) is True  # nobody looks between
    assert is_settled([*thetas(1.5, 8), *thetas(1.0, 8)], 1.2) is None


def test_looking_again_and_again_settles_wrongly_in_few_runs():
    """A true speedup a hair below the required one, normal processes, a look after each of 64."""
    wrong, draw = 0, random.Random(11)
    for _ in range(400):
        units = [-math.log(1.2) + draw.gauss(0.0, 0.05) for _ in range(64)]
        looks = (is_settled(units[:count], 1.2) for count in range(8, 65))
        wrong += next((look for look in looks if look is not None), None) is not None
    assert wrong / 400 <= 0.04  # both directions together: half of it is each one's


def job(infos, **changes):
    return Measure(
        subject=ScenarioFile(scenario="s", path="s.py", source_sha256="0", variants=infos),
        **changes,
    )


LADDER = tuple(VariantInfo(name=name, against=None if name == "a" else "a") for name in "abc")


def test_a_ladder_compares_with_the_rung_below_too():
    ladder = job(LADDER, ladder=True)
    assert pairs_of(ladder, {"a", "b", "c"}) == [
        ("control", "a"),
        ("b", "a"),
        ("c", "a"),
        ("c", "b"),
    ]
    assert pairs_of(ladder, {"a", "c"}) == [("control", "a"), ("c", "a")]
    assert pairs_of(ladder, {"b", "c"}) == []
    assert pairs_of(job(LADDER), {"a", "b", "c"}) == [("control", "a"), ("b", "a"), ("c", "a")]


def test_one_against_another_is_compared_with_the_baseline_first_and_one_against_none_not_at_all():
    infos = (*LADDER[:2], VariantInfo(name="c", against=None), VariantInfo(name="d", against="b"))
    over_both = [("control", "a"), ("b", "a"), ("d", "a"), ("d", "b")]
    assert pairs_of(job(infos), {"a", "b", "c", "d"}) == over_both
    assert pairs_of(job(infos), {"a", "d"}) == [("control", "a"), ("d", "a")]
    of_scale = (*infos[:3], VariantInfo(name="d", against="c"))
    assert pairs_of(job(of_scale), {"a", "c", "d"}) == [("control", "a"), ("d", "c")]
