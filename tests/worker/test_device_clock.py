"""What the device clock learns of one build it keeps for that build; the device itself is played."""

import pytest

from gpulab.model.scenario import Work
from gpulab.worker.build import Build
from gpulab.worker.device_clock import DeviceClock
from gpulab.worker.ledger import Block


class Played(DeviceClock):
    """Every block takes as long as it has steps; those of the builds in `waiting` never hide behind a spin."""

    waiting = ()

    def empty_s(self):
        return 1e-6

    def _spun(self, build, steps, known):
        known.step_s = 1e-6
        return Block(1e-6, 0.0, 0, 0, 0.0, steps), build not in self.waiting


@pytest.fixture
def builds():
    return [Build(Work(lambda: None), 0.0, None) for _ in range(2)]


def test_a_build_whose_launches_cannot_be_hidden_leaves_the_others_their_blocks(builds):
    clock = Played(lambda: None, None)
    waits, hides = builds
    clock.waiting = (waits,)
    for _ in range(3):  # in turn, as variants are measured
        assert clock.block(hides, 100).steps == 100
        assert clock.block(waits, 100).steps < 100
    assert clock.exposes(waits)
    assert not clock.exposes(hides)
    assert clock.block(waits, 100).steps == 1  # known by now, and not tried again


def test_of_a_build_never_timed_nothing_is_known(builds):
    assert not Played(lambda: None, None).exposes(builds[0])
