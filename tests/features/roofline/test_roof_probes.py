"""Roofs that take turns with the variants: which are needed, what they cost, what is told of
them.
"""

import pytest
import torch

from gpulab.core.machine import Device
from gpulab.engine.step_clock import Block
from gpulab.features.roofline.probes import PlannedProbe, Probe
from gpulab.features.roofline.roof_probes import RoofProbes, roof_probes
from gpulab.scenario import MiB, Work

CPU = Device(kind="cpu", name="", l2_bytes=32 * MiB, memory_bytes=2**34)
COST_S = 0.01


def work(**declared):
    return Work(lambda: None, **declared)


@pytest.mark.parametrize(
    ("works", "keys"),
    [
        ([work()], []),
        ([work(flops=10)], [("matrix", "fp32")]),
        ([work(bytes=100 * MiB), work(bytes=90 * MiB)], [("device memory", "update")]),
        (
            [
                work(bytes=8 * MiB, flops=10, dtype="bf16"),
                work(bytes=6 * MiB, flops=10, dtype="fp64"),
            ],
            [
                ("device memory", "update"),
                ("cache", "update"),
                ("matrix", "bf16"),
                ("matrix", "fp64"),
            ],
        ),
        # caches of their own
        ([work(bytes=4 * MiB), work(bytes=16 * MiB)], [("device memory", "update")]),
        ([work(bytes=1024)], [("device memory", "update")]),
    ],
)
def test_the_roofs_of_declared_work_are_probed_and_no_others(works, keys):
    assert [(probe.roof, probe.kind) for probe in roof_probes(CPU, works)] == keys


class Clock:
    """Blocks take 10 ms of a clock that nothing else moves; a step of probe n takes n + 1 ms."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr("gpulab.features.roofline.roof_probes.perf_counter", lambda: self.now)

    def steps_per_block(self, build):
        return 1, COST_S / 2

    def block(self, build, steps, lead_in):
        self.now += COST_S
        return Block(build.work.step(), 0.0, 0, 0, self.now, steps)


def probe(name, step_s):
    def make():
        return Probe(work_of(step_s), 1000, None)

    return PlannedProbe("matrix", name, make)


def work_of(step_s):
    return Work(lambda: step_s)


def test_a_tenth_of_the_time_goes_to_probes_and_each_is_measured_at_least_once(monkeypatch):
    clock = Clock(monkeypatch)
    probes = RoofProbes(clock, [probe("fp32", 1e-3), probe("bf16", 2e-3)], seed=1)
    probes.prepare()
    probes.after_round({"a": 4e-3}, 0.02)
    assert [(event.kind, event.blocks) for event in probes.events(3)] == [("fp32", 1), ("bf16", 1)]
    for _ in range(100):
        probes.after_round({"a": 4e-3, "b": 2e-3}, 0.02)
    fp32, bf16 = probes.events(3)
    assert clock.now == pytest.approx(0.1 * 101 * 0.02, abs=2 * COST_S)
    assert abs(fp32.blocks - bf16.blocks) <= 1
    assert (fp32.process, fp32.roof, fp32.amount, fp32.time_s) == (3, "matrix", 1000, 1e-3)
    assert fp32.ratios == pytest.approx({"a": 0.25, "b": 0.5})
    assert bf16.ratios == pytest.approx({"a": 0.5, "b": 1.0})
    probes.close()
    assert list(probes.events(3)) == []


def test_a_probe_that_fails_is_left_out_and_the_others_go_on(monkeypatch):
    def cannot_be_built():
        raise RuntimeError("no such instruction")

    def cannot_be_run():
        return Probe(Work(cannot_be_built), 1, None)

    clock = Clock(monkeypatch)
    planned = [
        PlannedProbe("matrix", "int8", cannot_be_built),
        PlannedProbe("matrix", "fp64", cannot_be_run),
    ]
    probes = RoofProbes(clock, [*planned, probe("fp32", 1e-3)], seed=1)
    probes.prepare()
    for _ in range(3):
        probes.after_round({"a": 1e-3}, 1.0)
    assert [event.kind for event in probes.events(0)] == ["fp32"]


def test_probes_leave_the_numbers_of_the_scenario_alone():
    from gpulab.engine.measure.clock import WallClock

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    probes = RoofProbes(WallClock(None), roof_probes(CPU, [work(flops=10, bytes=2**30)]), seed=1)
    probes.prepare()
    probes.after_round({"a": 1e-3}, 1e-3)
    assert {event.roof for event in probes.events(0)} == {"device memory", "matrix"}
    assert torch.equal(torch.rand(3), expected)
