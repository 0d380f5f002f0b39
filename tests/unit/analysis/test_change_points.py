"""Changes of a history: found by the third run, never made of one disturbed run, and of the
environment first.
"""

import random
from math import exp

import pytest

from gpulab.features.history.change_points import change_points, differ, level, runs_of

SPREAD = 0.003


def speedups(count, seed, steps=(), disturbed=()):
    """(speedup, low, high) of runs that spread by 0.3 %; `steps`: (place, log of the change)."""
    draw = random.Random(seed)
    intervals = []
    for place in range(count):
        log = 0.4 + draw.gauss(0, SPREAD) + sum(by for at, by in steps if place >= at)
        width = SPREAD
        if place in disturbed:
            log += 20 * SPREAD
            width = 20 * SPREAD
        intervals.append((exp(log), exp(log - width), exp(log + width)))
    return runs_of(intervals)


@pytest.mark.parametrize("by", [0.02, -0.02])
def test_a_step_is_found_by_the_third_run_and_stays_found(by):
    found = 0
    for seed in range(40):
        places = [change_points(speedups(count, seed, [(20, by)])) for count in range(20, 40)]
        assert places[0] == []
        found += all(any(abs(place - 20) <= 1 for place in each) for each in places[3:])
    assert found >= 38


def test_without_a_step_none_is_claimed_at_any_look():
    for seed in range(40):
        runs = speedups(60, seed)
        assert not any(change_points(runs.part(0, count)) for count in range(61))


def test_one_disturbed_run_is_no_change_and_two_steps_are_two():
    for seed in range(20):
        assert change_points(speedups(30, seed, disturbed=[27])) == []
    assert change_points(speedups(60, 1, [(20, 0.03), (40, 0.05)])) == [20, 40]


def test_a_step_of_less_than_builds_differ_by_is_none():
    assert change_points(speedups(200, 3, [(100, 0.005)])) == []


def test_of_two_levels_that_are_known_it_is_said_whether_they_differ():
    runs = speedups(30, 5, [(20, 0.02)])
    assert differ(runs.part(0, 20), runs.part(20, 30)) is True
    assert differ(runs.part(0, 10), runs.part(10, 20)) is False
    assert differ(runs.part(0, 20), runs.part(20, 22)) is None


def test_a_level_is_a_mean_with_its_interval_and_the_wide_count_less():
    runs = speedups(20, 7, disturbed=[3])
    mean = level(runs)
    assert mean.low < exp(0.4) < mean.high
    assert mean.speedup == pytest.approx(exp(0.4), rel=SPREAD)
    assert level(runs.part(0, 2)).low is None
