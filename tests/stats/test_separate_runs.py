"""Runs without pairs between them: the interval of their difference covers what runs differ by."""

from random import Random

import pytest

from gpulab.stats.separate_runs import ENOUGH_RUNS, SPEEDUP_SPREAD, are_in_turn, difference


def runs(random, count, *, spread=0.01, off=SPEEDUP_SPREAD, at=0.0):
    """Each of eight processes, and itself off by what runs differ."""
    made = []
    for _ in range(count):
        middle = at + random.gauss(0.0, off)
        made.append([middle + random.gauss(0.0, spread) for _ in range(8)])
    return made


@pytest.mark.parametrize("count", [1, 3, ENOUGH_RUNS])
def test_the_interval_holds_no_difference_where_there_is_none(count):
    random = Random(count)
    missed = 0
    for _ in range(300):
        interval = difference(runs(random, count), runs(random, count), SPEEDUP_SPREAD)
        missed += not interval.low <= 0.0 <= interval.high
    assert missed <= 9


@pytest.mark.parametrize("count", [3, ENOUGH_RUNS])
def test_what_two_weeks_differ_by_is_in_neither_of_two_folders(count):
    random = Random(count)
    missed = 0
    for _ in range(300):
        sides = [
            runs(random, count, off=0.003, at=random.gauss(0.0, SPEEDUP_SPREAD)) for _ in range(2)
        ]
        interval = difference(*sides, SPEEDUP_SPREAD, in_turn=False)
        missed += not interval.low <= 0.0 <= interval.high
    assert missed <= 9


def test_runs_alternate_or_one_side_comes_first():
    assert are_in_turn("1357", "2468")
    assert are_in_turn("1458", "2367")
    assert not are_in_turn("1234", "5678")
    assert are_in_turn("1", "2"), "a run of each says nothing of an order"


@pytest.mark.parametrize(("count", "found"), [(1, 0.1), (ENOUGH_RUNS, 0.04)])
def test_several_runs_show_a_smaller_change(count, found):
    random = Random(count)
    options = {"off": 0.006}
    for _ in range(50):
        after = runs(random, count, at=found, **options)
        assert difference(runs(random, count, **options), after, SPEEDUP_SPREAD).low > 0.01


def test_copies_of_a_run_are_no_evidence_that_runs_agree():
    random = Random(1)
    same = runs(random, 1) * 8
    interval = difference(same, same, SPEEDUP_SPREAD)
    assert interval.median == 0.0
    assert interval.half_width > 0.003
