"""What can go wrong while ceilings are measured stays with the one ceiling, and leaves nothing
behind.
"""

import gc
import weakref

import pytest
import torch
from found import finding
from torch.utils.flop_counter import FlopCounterMode

from gpulab.core.events import FindingMade, StageStarted
from gpulab.core.jobs import Calibrate
from gpulab.core.machine import Device
from gpulab.core.statuses import Stage
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.reporting import Reporter
from gpulab.features.roofline import calibration, probes
from gpulab.features.roofline.calibration import Calibration
from gpulab.features.roofline.events import CeilingsMeasured
from gpulab.features.roofline.probes import PlannedProbe, Probe, plan
from gpulab.scenario import MiB, Work

CPU = Device(kind="cpu", name="", l2_bytes=MiB, memory_bytes=2**34)
METHOD = finding("arrays", bytes=4096)


class Events(list):
    """A channel that keeps what it is given."""

    def emit(self, *events):
        self.extend(events)

    def pump(self):
        pass

    def of_type(self, event_type):
        return [event for event in self if isinstance(event, event_type)]


@pytest.fixture
def measure(monkeypatch):
    """The events of a pass over the probes that these functions make."""

    def measure(*makes, before=None, roof="device memory", kind="kind {}"):
        probes = [
            PlannedProbe(roof, kind.format(number), make) for number, make in enumerate(makes)
        ]
        monkeypatch.setattr(calibration, "plan", lambda *_, **__: iter(probes))
        monkeypatch.setattr(calibration, "_LONG_S", 0.01)
        events = Events()
        reporter = Reporter(events, Calibrate(), WorkerPosition(()))
        measured = Calibration(reporter, torch.device("cpu"), CPU, None)
        if before:
            before()
        measured.everything()
        return events

    return measure


def copies():
    a, out = torch.rand(4096), torch.empty(4096)
    return Probe(Work(lambda: out.copy_(a)), 2 * a.nbytes, METHOD)


def cannot_be_built():
    raise RuntimeError("no such instruction\nand more")


def cannot_be_run():
    return Probe(Work(cannot_be_built), 1, METHOD)


def test_a_probe_that_fails_is_named_and_costs_no_other(measure):
    events = measure(copies, cannot_be_built, cannot_be_run, copies)
    assert [ceiling.kind for ceiling in events[-1].ceilings] == ["kind 0", "kind 3"]
    assert [notice.finding for notice in events.of_type(FindingMade)] == [
        finding(
            "ceiling_failed", ceiling=f"device memory kind {number}", message="no such instruction"
        )
        for number in (1, 2)
    ]
    assert events[-1].complete == all(ceiling.steady for ceiling in events[-1].ceilings)


def test_the_arithmetic_of_a_cpu_is_derived_from_its_products(measure):
    matrix, vector = measure(copies, roof="matrix", kind="fp32")[-1].ceilings
    assert (matrix.source, vector.source) == ("measured", "derived")
    assert (vector.roof, vector.kind, vector.best) == ("vector", "fp32", matrix.best)


def test_what_memory_was_short_for_is_measured_again_another_time(measure):
    def too_large():
        raise MemoryError("not enough memory")

    assert not measure(copies, too_large)[-1].complete


def test_the_data_of_a_probe_goes_with_it(measure):
    references = []

    def large():
        probe = copies()
        references.append(weakref.ref(probe.work.step.__closure__[0].cell_contents))
        return probe

    events = measure(large, large)
    gc.collect()
    assert len(references) == 2
    assert [reference() for reference in references] == [None, None]
    assert len(events[-1].ceilings) == 2


def test_settings_that_a_file_makes_for_its_process_are_not_measured_with(measure):
    settings = []

    def looks():
        settings.append((torch.get_default_dtype(), torch.get_num_threads()))
        return copies()

    threads = torch.get_num_threads()

    def as_a_file_does():
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(threads + 1)

    try:
        measure(looks, before=as_a_file_does)
        assert settings == [(torch.float32, threads)]
        # and put back
        assert (torch.get_default_dtype(), torch.get_num_threads()) == (torch.float64, threads + 1)
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(threads)


def test_beside_a_run_stands_what_its_dtypes_need(monkeypatch):
    probes = [PlannedProbe("matrix", kind, copies) for kind in ("fp32", "bf16")]
    monkeypatch.setattr(calibration, "plan", lambda *_, **__: iter(probes))
    events = Events()
    reporter = Reporter(events, Calibrate(), WorkerPosition(()))
    Calibration(reporter, torch.device("cpu"), CPU, None).measure_for_run({"fp32"}, None)
    assert {ceiling.kind for ceiling in events[-1].ceilings} == {"fp32"}


def test_a_pass_shows_its_progress_and_its_ceilings_so_far(measure):
    events = measure(copies)
    assert [
        (stage.stage, stage.detail, stage.variant) for stage in events.of_type(StageStarted)
    ] == [(Stage.CEILINGS, "device memory", None)]
    (ceiling,) = events.of_type(CeilingsMeasured)[-1].ceilings
    assert ceiling.samples >= 5
    assert (ceiling.unit, ceiling.method) == ("B/s", METHOD)


def test_a_cpu_has_a_probe_of_everything_and_never_fp16():
    probes = {(probe.roof, probe.kind) for probe in plan(torch.device("cpu"), CPU)}
    assert {
        ("device memory", "triad"),
        ("cache", "read"),
        ("matrix", "int8"),
        ("launch", "enqueue"),
    } <= probes
    assert not any(kind == "fp16" for _, kind in probes)
    brief = {(probe.roof, probe.kind) for probe in plan(torch.device("cpu"), CPU, brief=True)}
    assert brief < probes


@pytest.mark.parametrize("faster", ["product", "convolution"])
def test_the_roof_of_a_cpu_is_the_faster_of_a_product_and_a_convolution(monkeypatch, faster):
    monkeypatch.setattr(probes, "_rate", lambda probe: float(probe.method.code == faster))
    probe = probes.products_of(torch.device("cpu"), "fp32", (64, 128), 1.0)
    assert probe.method.code == faster
    with FlopCounterMode(display=False) as counter:
        probe.work.step()
    assert counter.get_total_flops() == probe.amount
