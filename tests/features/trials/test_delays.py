"""Hooks on the parts of a step: a part is made longer, or all others are whenever it has run."""

import threading
from time import perf_counter, sleep

import pytest
import torch

from gpulab.core.jobs import Delay, PartKind
from gpulab.features.trials.delayed import PASSES
from gpulab.features.trials.hooks import HookedLab, Hooks
from gpulab.scenario import Work

CPU = torch.device("cpu")
DELAY_S = 0.02


class Lab:
    device = CPU

    def phase(self, name):
        return torch.no_grad()


def seconds_of(step):
    started = perf_counter()
    step()
    return perf_counter() - started


def hooked(step_of, *delays):
    """The work whose step `step_of(lab)` makes, with these hooks."""
    hooks = Hooks(CPU, delays)
    return hooks.of(Work(step_of(HookedLab(Lab(), hooks))))


@pytest.mark.parametrize("busy", [False, True])
def test_a_part_is_made_longer_only_while_the_context_is_entered(busy):
    def step_of(lab):
        def step():
            for _ in range(4):
                with lab.phase("part"):
                    pass

        return step

    delay = Delay(kind=PartKind.PHASE, name="part", seconds=DELAY_S / 4, busy=busy)
    work = hooked(step_of, delay)
    outside = min(seconds_of(work.step) for _ in range(5))
    assert outside < DELAY_S
    with work.context():
        assert seconds_of(work.step) >= 0.9 * DELAY_S
    with hooked(step_of, Delay(kind=PartKind.PHASE, name="other", seconds=1.0)).context():
        assert min(seconds_of(work.step) for _ in range(5)) < DELAY_S


OWED_S = 0.2


def pause_beside(wait):
    """Seconds of a pass of another thread, which waits until a part has run: all others owe a pause
    for that.
    """
    took = []

    def step_of(lab):
        def step():
            begun, done = threading.Event(), threading.Event()

            def other():
                with lab.phase("beside"):
                    begun.set()
                wait(done)
                took.append(seconds_of(beside))

            def beside():
                with lab.phase("beside"):
                    pass

            thread = threading.Thread(target=other)
            thread.start()
            begun.wait()
            sleep(0.002)
            with lab.phase("part"):
                pass
            done.set()
            thread.join()

        return step

    part = Delay(kind=PartKind.PHASE, name="part", seconds=OWED_S, others=True)
    work = hooked(step_of, part, Delay(kind=PartKind.PHASE, name="beside"))
    with work.context():
        own_s = seconds_of(work.step) - took[0]
    assert own_s < OWED_S
    return took[0]


def compute_until(done):
    while not done.is_set():
        torch.rand(256)


@pytest.mark.slow
def test_all_others_pause_when_a_part_has_run():
    # on a busy machine, a thread that computes may look like one that waits
    assert max(pause_beside(compute_until) for _ in range(10)) >= 0.9 * OWED_S


def test_a_thread_that_was_waiting_owes_no_pause():
    assert pause_beside(threading.Event.wait) < OWED_S / 2


def passes_of(hooks):
    passes = {name: part.sum(PASSES) for (_, name), part in hooks.parts.items()}
    return {name: count for name, count in passes.items() if count}


def test_forward_backward_and_optimizer_are_parts_of_any_program():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters())

    def step():
        model(torch.rand(2, 4)).sum().backward()
        optimizer.step()

    hooks = Hooks(CPU, (), recording=True)
    work = hooks.of(Work(step))
    backward = torch.autograd.backward
    with work.context():
        work.step()
        work.step()
    assert passes_of(hooks) == {"forward": 2, "backward": 2, "optimizer": 2}
    assert torch.autograd.backward is backward
    work.step()
    assert passes_of(hooks)["forward"] == 2


def test_an_operation_is_a_part_by_its_name():
    hooks = Hooks(CPU, [Delay(kind=PartKind.OPERATION, name="aten::mm")], recording=True)
    values = torch.rand(4, 4)
    work = hooks.of(Work(lambda: (values @ values, values + values)))
    with work.context():
        work.step()
    assert passes_of(hooks) == {"aten::mm": 1}


class Event:
    """Of a device whose clock says when each was recorded."""

    seconds = 0.0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Event.seconds += 0.5
        self.at = Event.seconds

    def elapsed_time(self, other):
        return 1e3 * (other.at - self.at)


@pytest.fixture
def device(monkeypatch):
    """A GPU; the cycles of the delays that it was given."""
    cycles = []
    monkeypatch.setattr("gpulab.features.trials.hooks.cycles_per_s", lambda: 1e9)
    monkeypatch.setattr(torch.cuda, "_sleep", cycles.append)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    return cycles


def step_on(hooks):
    lab = HookedLab(Lab(), hooks)

    def step():
        with lab.phase("part"):
            torch.rand(2)
        with lab.phase("other"):
            torch.rand(2)

    return hooks.of(Work(step))


def test_a_part_of_a_device_is_made_longer_there_and_all_others_by_a_cycle(device):
    delays = [
        Delay(kind=PartKind.PHASE, name="part", seconds=1e-3),
        Delay(kind=PartKind.PHASE, name="other"),
    ]
    work = step_on(Hooks(torch.device("cuda"), delays))
    with work.context():
        work.step()
    assert device == [1_000_000, 1]


def test_a_part_of_a_device_is_timed_by_its_events_and_not_delayed(device):
    hooks = Hooks(torch.device("cuda"), (), recording=True)
    work = step_on(hooks)
    with work.context():
        work.step()
        hooks.clear()
        work.step()
    assert hooks.parts[PartKind.PHASE, "part"].device_s == pytest.approx(0.5)
    assert not device
