"""What can go wrong while ceilings are measured stays with the one ceiling, and leaves nothing behind."""

import gc
import weakref

import pytest
import torch

from gpulab.model.events import CeilingsMeasured, Noticed, StageStarted
from gpulab.model.request import Device
from gpulab.model.scenario import MiB, Work
from gpulab.worker import ceilings
from gpulab.worker.ceilings import Calibration
from gpulab.worker.probes import Planned, Probe, plan

CPU = Device(kind="cpu", name="", l2_bytes=MiB, memory_bytes=2**34)


class Events(list):
    """A channel that keeps what it is told."""

    def emit(self, *events):
        self.extend(events)

    def pump(self):
        pass

    def of(self, kind):
        return [event for event in self if isinstance(event, kind)]


@pytest.fixture
def measure(monkeypatch):
    """The events of a pass over the probes that these functions make."""

    def measure(*makes, before=None):
        planned = [Planned("device memory", f"kind {number}", make) for number, make in enumerate(makes)]
        monkeypatch.setattr(ceilings, "plan", lambda *_, **__: iter(planned))
        monkeypatch.setattr(ceilings, "_WHOLE_S", 0.01)
        events = Events()
        calibration = Calibration(events, torch.device("cpu"), CPU, None)
        if before:
            before()
        calibration.whole()
        return events

    return measure


def copies():
    a, out = torch.rand(4096), torch.empty(4096)
    return Probe(Work(lambda: out.copy_(a)), 2 * a.nbytes, "small")


def cannot_be_built():
    raise RuntimeError("no such instruction\nand more")


def cannot_be_taken():
    return Probe(Work(cannot_be_built), 1, "broken")


def test_one_that_fails_is_named_and_costs_no_other(measure):
    events = measure(copies, cannot_be_built, cannot_be_taken, copies)
    assert [one.kind for one in events[-1].ceilings] == ["kind 0", "kind 3"]
    assert [one.text for one in events.of(Noticed)] == [
        f"the ceiling device memory kind {number} could not be measured: no such instruction" for number in (1, 2)
    ]
    assert events[-1].whole  # what the device cannot do is not asked of it again in every run


def test_what_memory_was_short_for_is_measured_again_another_time(measure):
    def too_large():
        raise MemoryError("not enough memory")

    assert not measure(copies, too_large)[-1].whole


def test_the_data_of_a_probe_goes_with_it(measure):
    seen = []

    def large():
        probe = copies()
        seen.append(weakref.ref(probe.work.step.__closure__[0].cell_contents))
        return probe

    events = measure(large, large)
    gc.collect()
    assert len(seen) == 2
    assert [one() for one in seen] == [None, None]
    assert len(events[-1].ceilings) == 2


def test_what_a_file_sets_for_its_process_is_not_measured_with(measure):
    found = []

    def looks():
        found.append((torch.get_default_dtype(), torch.get_num_threads()))
        return copies()

    threads = torch.get_num_threads()

    def as_a_file_does():
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(threads + 1)

    try:
        measure(looks, before=as_a_file_does)
        assert found == [(torch.float32, threads)]
        assert (torch.get_default_dtype(), torch.get_num_threads()) == (torch.float64, threads + 1)  # and put back
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)


def test_a_pass_shows_its_progress_and_what_it_has_so_far(measure):
    events = measure(copies)
    assert [one.variant for one in events.of(StageStarted)] == ["device memory"]
    assert events.of(CeilingsMeasured)[-1].ceilings[0].samples >= 5


def test_on_a_cpu_there_is_one_of_everything_it_has_and_never_fp16():
    found = {(one.roof, one.kind) for one in plan(torch.device("cpu"), CPU)}
    assert {("device memory", "triad"), ("cache", "read"), ("matrix", "int8"), ("launch", "enqueue")} <= found
    assert not any(kind == "fp16" for _, kind in found)
    brief = {(one.roof, one.kind) for one in plan(torch.device("cpu"), CPU, brief=True)}
    assert brief < found
