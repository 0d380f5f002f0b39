"""Telemetry against a stand-in driver: the real client in the real process, whatever the driver
does.
"""

import os
import signal
import time
from itertools import pairwise

import pytest
from found import finding
from sampling import Driver

from gpulab.features.telemetry.events import (
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
)


@pytest.fixture
def driver(lab, standin, monkeypatch):
    driver = Driver(lab, standin, monkeypatch)
    yield driver
    driver.stop()


def test_a_gpu_is_read_with_its_limits_and_the_host_beside_it(driver):
    sampling = driver.sample("util=50")
    started = sampling.started
    assert (started.gpu, started.uuid, started.driver) == (
        "NVIDIA Stand-in H100",
        "GPU-stand-in-0",
        "999.01",
    )
    assert (started.limits["power"], started.limits["sm_clock"]) == (700, 1980)
    assert started.unsupported == {}
    assert started.problems == []
    readings = sampling.readings(4)
    last = readings[-1].values
    assert {
        "sm": 10,
        "occupancy": 15,
        "tensor": 25,
        "dram": 50,
        "power": 410,
    }.items() <= last.items()
    assert readings[0].values["busy"] == 50
    assert last["rss"] > 0
    assert all(before.t > after.since for before, after in pairwise(readings))  # without gaps


@pytest.mark.slow
def test_a_driver_that_does_not_start_is_explained_and_the_host_is_read(driver, tmp_path):
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    samplings = {
        "driver_was_updated": driver.sample("init=18"),
        "driver_not_loaded": driver.sample("init=9"),
        "no_such_gpu": driver.sample("gpus=0"),
        "gpu_lost": driver.sample("lost=0"),
        "no_driver": driver.sample(library=tmp_path),
        "run_on_cpu": driver.sample("", gpu="on"),
    }
    for code, sampling in samplings.items():
        started = sampling.started
        assert (started.gpu, started.no_gpu_reason) == (None, finding(code))
        reading = sampling.readings(2)[-1]
        assert reading.values["rss"] > 0
        assert "power" not in reading.values
        assert reading.reasons is None


def test_of_two_gpus_the_one_that_is_asked_for_or_that_the_worker_runs_on_is_sampled(driver):
    samplings = {
        "GPU-stand-in-0": driver.sample("gpus=2"),
        "GPU-stand-in-1": driver.sample("gpus=2", gpu="GPU-stand-in-1"),
        # torch and the driver number devices differently: the UUID counts.
        "GPU-stand-in-2": driver.sample("gpus=3", gpu="on", uuid="GPU-stand-in-2"),
    }
    assert {uuid: sampling.started.uuid for uuid, sampling in samplings.items()} == {
        uuid: uuid for uuid in samplings
    }


def test_a_gpu_that_is_lost_is_reported_once_and_the_host_goes_on(driver):
    sampling = driver.sample("lost=40")
    assert sampling.lost.reason == finding("gpu_lost")
    sampling.readings(len(sampling.of_type(Telemetry)) + 2)
    events = sampling.stop()
    assert len([event for event in events if isinstance(event, TelemetryLost)]) == 1
    lost = next(place for place, event in enumerate(events) if isinstance(event, TelemetryLost))
    before = [event for event in events[:lost] if isinstance(event, Telemetry)]
    after = [event for event in events[lost:] if isinstance(event, Telemetry)]
    assert any("sm" in reading.values for reading in before)
    assert not any("sm" in reading.values or "power" in reading.values for reading in after)
    assert all("worker_cpu" in reading.values for reading in after)


def test_a_driver_that_hangs_holds_up_nothing(driver):
    sampling = driver.sample("slow=600000")
    time.sleep(0.5)
    started, ended = sampling.stop()
    # It is given a moment to end, and killed in its call, which takes longer than a test may.
    assert sampling.process._process.returncode == -signal.SIGKILL
    assert started.no_gpu_reason == finding("driver_did_not_answer")
    assert isinstance(ended, TelemetryEnded)


def test_a_process_that_is_killed_is_lost_and_ends_all_the_same(driver):
    sampling = driver.sample("")
    sampling.readings(1)
    os.kill(sampling.process._process.pid, signal.SIGKILL)
    assert sampling.lost.reason == finding("telemetry_process_ended")
    assert [type(event) for event in sampling.stop()[-2:]] == [TelemetryLost, TelemetryEnded]


@pytest.mark.parametrize("read", [True, False], ids=["seen", "not seen before the stop"])
def test_a_process_that_is_killed_before_its_first_word_is_not_taken_for_a_driver_that_hangs(
    driver, read
):
    sampling = driver.sample("slow=600000")
    sampling.process._process.kill()
    sampling.process._process.wait()
    if read:
        assert sampling.started.no_gpu_reason == finding("telemetry_process_ended")
    started, ended = sampling.stop()
    assert started.no_gpu_reason == finding("telemetry_process_ended")
    assert isinstance(ended, TelemetryEnded)


def test_what_slows_or_shares_the_gpu_is_in_the_readings(driver):
    slowed = driver.sample("reasons=0x40")
    counted = driver.sample("counter=270")  # it was slowed between two readings, and at neither
    shared = driver.sample("procs=1")
    capped = driver.sample("reasons=4,width=8,ecc=2")
    assert {reading.reasons for reading in slowed.readings(3)} == {0x40}
    assert [reading.reasons for reading in counted.readings(4)][1:] == [0x40] * 3
    assert {reading.reasons for reading in capped.readings(3)} == {4}
    others = [reading for reading in shared.readings(3) if reading.others is not None]
    assert others[0].others
    assert all(name.endswith(" 1") for name in others[0].others)
    assert others[0].others_since < others[0].t
    assert capped.started.problems == [
        finding("ecc_errors", count=2),
        finding("pcie_narrow", width=8, full=16),
    ]
    assert (capped.started.health["pcie_width_max"], capped.started.health["ecc_uncorrected"]) == (
        16,
        2,
    )
    assert isinstance(capped.started, TelemetryStarted)
