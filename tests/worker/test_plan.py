"""The plan: epochs before rounds, within the time, never below what carries an interval."""

from hypothesis import given
from hypothesis import strategies as st

from gpulab.model.compare import DEAR_FLOOR, FLOOR
from gpulab.model.stats import FEWEST
from gpulab.worker.plan import EPOCHS, MOST_EPOCHS, ROUNDS, plan

SECONDS = st.floats(1e-5, 100)


def test_a_cheap_step_gets_twenty_epochs_of_five_rounds_or_more():
    found = plan(time_s=10, round_s=0.01, dearest_build_s=0.001, builds_s=0.004)
    assert (found.rounds, found.epochs, found.dear, found.floor) == (ROUNDS, EPOCHS, False, FLOOR)


def test_a_slow_step_keeps_eight_epochs_with_fewer_rounds():
    found = plan(time_s=10, round_s=1.0, dearest_build_s=0.1, builds_s=0.4)
    assert (found.rounds, found.epochs) == (1, 10)
    assert plan(time_s=10, round_s=5.0, dearest_build_s=0.1, builds_s=0.4).epochs == FEWEST


def test_builds_that_take_longer_than_their_rounds_get_more_rounds():
    assert plan(time_s=10, round_s=0.005, dearest_build_s=0.1, builds_s=0.2).rounds == 20


def test_dear_builds_get_fewer_epochs_a_wider_floor_and_enough_pairs():
    found = plan(time_s=10, round_s=0.1, dearest_build_s=3.0, builds_s=4.0)
    assert (found.epochs, found.dear, found.floor) == (2, True, DEAR_FLOOR)
    assert plan(time_s=10, round_s=9.0, dearest_build_s=60.0, builds_s=99.0).rounds == FEWEST
    assert plan(time_s=100, round_s=0.1, dearest_build_s=1.5, builds_s=5.0).dear is False


def test_what_runs_alone_is_never_compared_within_one_build():
    found = plan(time_s=10, round_s=0.1, dearest_build_s=30.0, builds_s=99.0, alone=True)
    assert not found.dear
    assert found.epochs >= FEWEST


@given(SECONDS, SECONDS, SECONDS, st.integers(1, 6))
def test_every_plan_can_carry_an_interval(time_s, round_s, build_s, variants):
    found = plan(time_s=time_s, round_s=round_s, dearest_build_s=build_s, builds_s=build_s * variants)
    assert 1 <= found.epochs <= found.most <= MOST_EPOCHS
    assert found.rounds >= 1
    assert found.rounds * found.epochs >= FEWEST
    assert found.dear or found.epochs >= FEWEST
    if found.epochs > FEWEST:
        assert found.epochs * found.rounds * round_s <= time_s * 1.01 or found.rounds == FEWEST
