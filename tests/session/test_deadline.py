"""A run ends by the user's timeout; without one by silence, or long after the end that the engine
expected.
"""

import pytest
from found import finding

from gpulab.core import events as e
from gpulab.core.statuses import Stage
from gpulab.session.deadline import Deadline


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def planned(expected_s):
    return e.Planned(rounds=5, epochs=20, expected_s=expected_s)


def at(stage, variant=None):
    return e.StageStarted(stage=stage, variant=variant)


def test_a_timeout_of_the_user_is_absolute_and_said_once(clock):
    deadline = Deadline(30.0, clock)
    deadline.on_event(at(Stage.MEASURE))
    deadline.on_event(planned(1000.0))
    assert deadline.at == 130.0
    assert deadline.passed() is None
    clock.now = 130.0
    assert deadline.passed() == finding("timeout", timeout_s=30.0)
    assert (deadline.at, deadline.passed()) == (None, None)


def test_without_one_only_silence_ends_a_run_that_has_no_plan(clock):
    deadline = Deadline(None, clock)
    for _ in range(10):
        clock.now += 599.0
        assert deadline.passed() is None
        deadline.on_event(at(Stage.BUILD, "compiled"))
    clock.now += 300.0
    deadline.on_event(e.Log(lines=["still here"]))
    deadline.on_event(e.Reported(variant=None, name="x", value=1.0))
    clock.now += 301.0
    assert deadline.passed() == finding("no_progress", silence_s=600.0, during="build compiled")


def test_a_plan_ends_a_run_that_takes_several_times_as_long(clock):
    deadline = Deadline(None, clock)
    deadline.on_event(planned(1000.0))
    for _ in range(42):
        clock.now += 100.0
        deadline.on_event(at(Stage.MEASURE))
        assert deadline.passed() is None
    clock.now += 100.0
    deadline.on_event(at(Stage.MEASURE))
    assert deadline.passed() == finding("overdue", expected_s=1000.0, taken_s=4300.0)


def process(number):
    return e.ProcessStarted(process=number, seed=number)


def test_a_process_that_hangs_is_overdue_by_the_plan_and_the_pace_before_it(clock):
    deadline = Deadline(None, clock)
    deadline.on_event(e.Planned(rounds=1, epochs=1, processes=8, expected_s=40.0))
    clock.now += 10.0
    deadline.on_event(process(1))
    for _ in range(7):
        clock.now += 100.0
        deadline.on_event(at(Stage.MEASURE))
    assert deadline.passed() == finding("overdue", expected_s=80.0, taken_s=710.0)


def test_two_variants_of_ten_seconds_a_step_have_their_time(clock):
    deadline = Deadline(None, clock)
    deadline.on_event(e.Calibrated(variant="a", steps_per_block=1, step_s=10.0, empty_block_s=0.0))
    deadline.on_event(planned(8 * 60.0))
    for _ in range(60):
        clock.now += 10.0
        deadline.on_event(at(Stage.MEASURE))
    assert deadline.passed() is None


def test_steps_that_take_long_are_given_longer(clock):
    deadline = Deadline(None, clock)
    deadline.on_event(e.Built(variant="a", build_s=1.0, first_step_s=120.0, items=1.0))
    clock.now += 3599.0
    assert deadline.passed() is None
    clock.now += 2.0
    assert deadline.passed().values["silence_s"] == 3600.0


def test_what_follows_the_rounds_is_not_in_the_plan(clock):
    deadline = Deadline(None, clock)
    deadline.on_event(planned(1.0))
    deadline.on_event(e.Stopped(reason="width"))
    clock.now += 500.0
    assert deadline.passed() is None
