"""The plan: a part of the time for each process, in it epochs before rounds, and never less than
one of each.
"""

from hypothesis import given
from hypothesis import strategies as st

from gpulab.engine.measure.plan import PROCESSES, ROUNDS, is_kept, plan
from gpulab.stats.statistics import FEWEST

SECONDS = st.floats(1e-5, 100)


def test_a_cheap_step_gets_several_builds_in_each_process():
    planned = plan(time_s=10, round_s=0.01, builds_s=0.004, start_s=0.1)
    assert planned.epochs == 4
    assert planned.rounds > ROUNDS
    assert planned.processes == FEWEST


def test_a_process_that_takes_long_to_start_still_measures():
    planned = plan(time_s=10, round_s=0.01, builds_s=0.004, start_s=5.0)
    assert planned.stretch_s == 0.4 * 10 / PROCESSES


def test_a_build_that_takes_a_large_part_of_a_process_stays_in_it():
    assert is_kept(1.1, 0.0, 10.0)
    assert is_kept(0.01, 2.0, 10.0)
    assert not is_kept(0.01, 0.01, 10.0)


@given(SECONDS, SECONDS, SECONDS, SECONDS)
def test_every_plan_fits_its_time_or_is_the_least_there_is(time_s, round_s, builds_s, start_s):
    planned = plan(time_s=time_s, round_s=round_s, builds_s=builds_s, start_s=start_s)
    assert planned.rounds >= 1
    assert planned.epochs >= 1
    assert planned.stretch_s <= time_s / PROCESSES
    epochs_s = planned.epochs * (builds_s + planned.rounds * round_s)
    assert epochs_s <= 1.01 * time_s / PROCESSES or planned.epochs * planned.rounds == 1
