"""What the profiler's process sees of a thread beside its operations."""

import time
from types import SimpleNamespace

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
    ("step_s", "spread", "events", "stateful", "steps"),
    [
        (1e-3, 0.0, 10, False, 200),
        (1e-3, 0.0, 10, True, 20),
        (0.1, 0.0, 10, False, 10),
        (0.1, 0.0, 10_000, False, 3),
        (0.1, 0.5, 2000, False, 25),
        (0.1, None, 2000, False, 10),
        (4.0, 0.5, 10, False, 1),
        (0.1, 0.5, 200_000, False, 1),
    ],
)
def test_a_recording_has_as_many_steps_as_their_spread_needs(
    step_s, spread, events, stateful, steps
):
    """While they take three seconds at most, and their recording can be read."""
    assert (
        profiler._window_steps(step_s, spread, SimpleNamespace(size=events), stateful=stateful)
        == steps
    )
