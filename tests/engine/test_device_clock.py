"""What the device clock learns of a variant is kept for that variant; the device itself is
simulated.
"""

from types import SimpleNamespace

import pytest
import torch

from gpulab.engine.build.build import Build
from gpulab.engine.measure import device_clock
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.step_clock import Block
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


class Gpu:
    """A device with a stream that the host waits for and another one; `now` is the host's clock."""

    def __init__(self):
        self.now = self.main = self.side = 0.0

    def wait_for_stream(self):
        self.now = max(self.now + 5e-6, self.main)

    def wait(self):
        self.now = max(self.now + 5e-6, self.main, self.side)

    def launch(self, stream, seconds):
        self.now += 2e-6
        setattr(self, stream, max(self.now, getattr(self, stream)) + seconds)

    def join(self):
        self.main = max(self.main, self.side)


@pytest.fixture
def gpu(monkeypatch):
    gpu = Gpu()
    stream = SimpleNamespace(synchronize=gpu.wait_for_stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(device_clock, "perf_counter", lambda: gpu.now)
    return gpu


def missed(gpu, step, steps):
    build = Build(Work(step), 0.0, None, "suspect")
    return SimulatedClock(gpu.wait, None).misses(build, steps)


@pytest.mark.parametrize("steps", [1, 50])
def test_a_side_stream_that_is_not_joined_is_found(gpu, steps):
    device_s, stream_s = missed(gpu, lambda: gpu.launch("side", 100e-6), steps)
    assert device_s > stream_s + 50e-6


def test_one_that_is_slower_than_the_current_stream_is_found_on_many_steps(gpu):
    def step():
        gpu.launch("main", 8e-6)
        gpu.launch("side", 20e-6)

    assert missed(gpu, step, 50) is not None


@pytest.mark.parametrize("steps", [1, 50])
def test_a_side_stream_that_is_joined_is_accused_of_nothing(gpu, steps):
    def step():
        gpu.launch("side", 100e-6)
        gpu.join()

    assert missed(gpu, step, steps) is None
    assert missed(gpu, lambda: gpu.launch("main", 100e-6), steps) is None
