"""The plan: epochs before rounds, within the time, never below what carries an interval."""

from hypothesis import given
from hypothesis import strategies as st

from gpulab.analysis.comparison import EXPENSIVE_FLOOR, FLOOR
from gpulab.analysis.statistics import FEWEST
from gpulab.worker.timing.plan import EPOCHS, ROUNDS, plan

SECONDS = st.floats(1e-5, 100)


def test_a_cheap_step_gets_twenty_epochs_of_five_rounds_or_more():
    planned = plan(time_s=10, round_s=0.01, longest_build_s=0.001, builds_s=0.004)
    assert (planned.rounds, planned.epochs, planned.expensive, planned.floor) == (ROUNDS, EPOCHS, False, FLOOR)


def test_a_slow_step_keeps_eight_epochs_with_fewer_rounds():
    planned = plan(time_s=10, round_s=1.0, longest_build_s=0.1, builds_s=0.4)
    assert (planned.rounds, planned.epochs) == (1, 10)
    assert plan(time_s=10, round_s=5.0, longest_build_s=0.1, builds_s=0.4).epochs == FEWEST


def test_builds_that_take_longer_than_their_rounds_get_more_rounds():
    assert plan(time_s=10, round_s=0.005, longest_build_s=0.1, builds_s=0.2).rounds == 20


def test_expensive_builds_get_fewer_epochs_a_wider_floor_and_enough_pairs():
    planned = plan(time_s=10, round_s=0.1, longest_build_s=3.0, builds_s=4.0)
    assert (planned.epochs, planned.expensive, planned.floor) == (2, True, EXPENSIVE_FLOOR)
    assert plan(time_s=10, round_s=9.0, longest_build_s=60.0, builds_s=99.0).rounds == FEWEST
    assert plan(time_s=100, round_s=0.1, longest_build_s=1.5, builds_s=5.0).expensive is False


def test_exclusive_variants_are_never_compared_within_one_build():
    planned = plan(time_s=10, round_s=0.1, longest_build_s=30.0, builds_s=99.0, exclusive=True)
    assert not planned.expensive
    assert planned.epochs >= FEWEST


def test_a_run_that_is_asked_for_an_hour_is_stopped_by_no_number_of_epochs():
    planned = plan(time_s=3600, round_s=0.005, longest_build_s=0.01, builds_s=0.02)
    assert (planned.most, planned.epochs, planned.rounds) == (None, EPOCHS, 50)


@given(SECONDS, SECONDS, SECONDS, st.integers(1, 6))
def test_every_plan_can_carry_an_interval(time_s, round_s, build_s, variants):
    planned = plan(time_s=time_s, round_s=round_s, longest_build_s=build_s, builds_s=build_s * variants)
    assert 1 <= planned.epochs <= EPOCHS
    assert planned.most == (planned.epochs if planned.expensive else None)
    assert planned.rounds >= 1
    assert planned.rounds * planned.epochs >= FEWEST
    assert planned.expensive or planned.epochs >= FEWEST
    if planned.epochs > FEWEST:
        assert planned.epochs * planned.rounds * round_s <= time_s * 1.01 or planned.rounds == FEWEST
