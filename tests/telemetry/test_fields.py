"""Fields that a device does not have: the real client and process, against a stand-in driver that lacks them."""

import os

import pytest
from conftest import wait_for

from gpulab.model.events import Telemetry, WorkerReady
from gpulab.model.request import Device
from gpulab.model.state import fold_all
from gpulab.run.sampler import Sampler

NOSUP = {
    "power": "f186",
    "power_average": "f185",
    "energy": "f83",
    "busy": "util",
    "memory_used": "mem",
    "sm_clock": "clock",
    "memory_clock": "memclock",
    "temperature": "temp",
    "reasons": "reasons",
    "processes": "procs",
    "sm": "gpm",
    "occupancy": "g3",
    "dram": "g10",
    "fp64": "g11",
    "pcie_tx": "g20",
    "nvlink_rx": "g60",
}


@pytest.mark.parametrize("field", NOSUP)
def test_a_field_that_is_not_supported_says_so_and_the_others_go_on(lab, driver, monkeypatch, field):
    driver(f"nosup={NOSUP[field]}")
    for name in ("LD_LIBRARY_PATH", "STANDIN"):
        monkeypatch.setenv(name, lab.env[name])
    sampler, events = Sampler("0"), []
    sampler.target(WorkerReady(pid=os.getpid(), device=Device(kind="cpu", name="cpu"), environment={}))

    def readings():
        events.extend(sampler.take()[0])
        return [event for event in events if isinstance(event, Telemetry)]

    wait_for(lambda: len(readings()) >= 8)  # some fields are due at few of them only
    events += sampler.stop()
    found = fold_all(events)
    assert found.unsupported[field] == "not supported by this device"
    assert not any(field in one.values for one in found.telemetry)
    assert any("worker_cpu" in one.values for one in found.telemetry)
    assert any("power" in one.values or field == "power" for one in found.telemetry)
    assert any("tensor" in one.values for one in found.telemetry) == (field != "sm")
