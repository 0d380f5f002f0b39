"""What the profiler's process sees of a thread beside its operations."""

import time

import pytest

from gpulab.features.goodput import worker as profiler


def loop():
    return sum(i * i for i in range(20_000))


def test_sleep_is_waiting_and_work_is_not():
    slept = [profiler._plain(lambda: time.sleep(0.01), 3, lambda: None) for _ in range(5)]
    worked = [profiler._plain(loop, 3, lambda: None) for _ in range(5)]
    # of the best of five, beside whatever else runs
    assert max(group.waited for group in slept) > 0.2 > min(group.waited for group in worked)


@pytest.mark.parametrize(
    ("step_s", "events", "stateful", "steps"),
    [
        (1e-3, 10, False, 200),
        (1e-3, 10, True, 20),
        (0.1, 10, False, 10),
        (0.1, 10_000, False, 5),
        (4.0, 10, False, 1),
        (0.1, 200_000, False, 1),
    ],
)
def test_a_recording_has_ten_steps_while_it_is_short_and_can_be_read(
    step_s, events, stateful, steps
):
    assert profiler._window_steps(step_s, events, stateful=stateful) == steps
