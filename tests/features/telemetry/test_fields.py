"""Fields that a device does not have: the real client and process, against a stand-in driver that
lacks them.
"""

import pytest
from sampling import Driver

from gpulab.features.telemetry.fields import FIELDS
from gpulab.features.telemetry.gpu import METRICS
from gpulab.features.telemetry.result import TelemetryReport
from gpulab.report.sentences import builtins_of

UNSUPPORTED = {
    "power": "f186",
    "power_average": "f185",
    "energy": "f83",
    "busy": "util",
    "memory_used": "mem",
    "sm_clock": "clock",
    "memory_clock": "memclock",
    "temperature": "temp",
    "reasons": "reasons+f269+f270+f271",
    "processes": "procs",
    "occupancy": "g3",
    "dram": "g10",
    "fp64": "g11",
    "pcie_tx": "g20",
    "nvlink_rx": "g60",
}
"""What the stand-in calls it, by field; without GPM there are others."""
OF_THE_HOST = {"worker_cpu", "machine_cpu", "others_cpu", "rss", "switches", "frequency"}


@pytest.fixture
def driver(lab, standin, monkeypatch):
    driver = Driver(lab, standin, monkeypatch)
    yield driver
    driver.stop()


def test_keys_of_json_end_with_the_unit():
    last = dict.fromkeys(FIELDS, 1.0)
    keys = builtins_of(TelemetryReport(last=last))["last"]
    ends = ("_percent", "_bytes", "_bytes_per_s", "_per_s", "_w", "_j", "_mhz", "_c")
    without = [key for key in keys if not key.endswith(ends)]
    assert without == ["reasons", "processes"]
    assert {"power_w", "sm_clock_mhz", "memory_used_bytes", "switches_per_s"} <= set(keys)


def values(sampling, count):
    """Every field that had a value in so many readings; some fields are due at few of them only."""
    return {field for reading in sampling.readings(count) for field in reading.values}


@pytest.mark.slow
def test_a_field_that_is_not_supported_says_so_and_the_others_go_on(driver):
    whole = driver.sample("")
    partial = driver.sample(f"nosup={'+'.join(UNSUPPORTED.values())}")
    without_gpm = driver.sample("nosup=gpm")
    claimed = driver.sample("gpm=3")  # it says that it has GPM, and then has none
    assert values(whole, 8) - OF_THE_HOST == FIELDS.keys() - OF_THE_HOST - {"reasons", "processes"}
    assert all(reading.reasons is not None for reading in whole.readings(8))
    assert any(reading.others is not None for reading in whole.readings(8))
    assert whole.telemetry.unsupported == {}
    present = values(partial, 8)
    assert partial.telemetry.unsupported == dict.fromkeys(UNSUPPORTED, "not_supported")
    assert present - OF_THE_HOST == FIELDS.keys() - OF_THE_HOST - UNSUPPORTED.keys()
    assert {"worker_cpu", "machine_cpu", "rss"} <= present
    assert {(reading.reasons, reading.others) for reading in partial.readings(8)} == {(None, None)}
    for sampling in (without_gpm, claimed):
        present = values(sampling, 8)
        assert sampling.telemetry.unsupported == dict.fromkeys(METRICS, "not_supported")
        assert not METRICS.keys() & present
        assert {"power", "busy"} <= present
