"""The curve of the first steps: what settles when, and what it cost, of made-up processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.events import FirstSteps
from gpulab.features.first_steps import report

TIMES = st.lists(st.floats(1e-6, 10), min_size=8, max_size=64)


def curve_of(processes):
    return report.curve_of(
        [FirstSteps(variant="a", process=0, build_s=1.0, times_s=times) for times in processes]
    )


def test_a_slow_first_step_costs_what_it_takes_beyond_a_settled_one():
    curve = curve_of([[5.0, 2.0] + [1.0] * 28] * 8)
    assert [step.value for step in curve.steps_s[:3]] == [5.0, 2.0, 1.0]
    assert curve.settled_s.value == 1.0
    assert curve.settled_after == 2
    assert curve.excess_s.value == 5.0


def test_the_cost_is_that_of_the_steps_before_it_settles():
    curve = curve_of([[4.0] * 10 + [1.0] * 30] * 8)
    assert curve.settled_after == 10
    assert curve.excess_s.value == pytest.approx(3.0 * 10)


def test_what_never_gets_steady_has_no_settled_step():
    assert curve_of([[2.0**-place for place in range(30)]] * 8).settled_after is None


def test_processes_of_different_lengths_are_cut_to_the_shortest():
    curve = curve_of([[1.0] * 20, [1.0] * 9, [1.0] * 64])
    assert len(curve.steps_s) == 9
    assert curve.settled_s.low is None  # three processes carry no interval


def test_nothing_is_no_curve():
    assert curve_of([]) is None
    assert curve_of([[], [1.0]]) is None


@given(st.lists(TIMES, min_size=1, max_size=12))
def test_intervals_hold_their_medians_and_costs_are_never_negative(processes):
    curve = curve_of(processes)
    for ends in (*curve.steps_s, curve.settled_s, curve.excess_s):
        assert ends.value >= 0
        assert ends.low is None or ends.low <= ends.value <= ends.high
        assert (ends.low is None) == (len(processes) < 8)
