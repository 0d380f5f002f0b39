"""What the device clock learns of a variant is kept for that variant; the device itself is
simulated.
"""

import pytest

from gpulab.engine.build.build import Build
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.processes.channel import Block
from gpulab.scenario import Work


class SimulatedClock(DeviceClock):
    """Every block takes as long as it has steps; those of the builds in `waiting` never hide behind
    a spin.
    """

    waiting = ()

    def empty_s(self):
        return 1e-6

    def _hot_block(self, build, steps, queueing, interruption):
        queueing.step_s = 1e-6
        return Block(1e-6, 0.0, 0, 0, 0.0, steps), build not in self.waiting


@pytest.fixture
def builds():
    return [Build(Work(lambda: None), 0.0, None, name) for name in ("waits", "hides")]


def test_a_build_whose_launches_cannot_be_hidden_leaves_the_others_their_blocks(builds):
    clock = SimulatedClock(lambda: None, None)
    waits, hides = builds
    clock.waiting = (waits,)
    for _ in range(3):  # in turn, as variants are measured
        assert clock.block(hides, 100).steps == 100
        assert clock.block(waits, 100).steps < 100
    assert clock.exposes(waits)
    assert not clock.exposes(hides)
    assert clock.block(waits, 100).steps == 1  # as is known by now, and not tried again


def test_nothing_is_known_of_a_build_that_was_never_timed(builds):
    assert not SimulatedClock(lambda: None, None).exposes(builds[0])
