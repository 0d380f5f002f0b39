"""Telemetry against a stand-in driver: the real client, the real process, real runs."""

import json
import os
import select
import signal
import time

import pytest
from conftest import printed, wait_for

from gpulab.model.events import WorkerReady
from gpulab.model.request import Device
from gpulab.model.state import fold_all
from gpulab.run.record import read
from gpulab.run.sampler import Sampler
from gpulab.views.telemetry import Rows
from gpulab.views.text import Glyphs

STEPS = """
import time
import torch
from gpulab import Scenario, Work
scenario = Scenario("test")

@scenario.variant
def one(lab):
    data = torch.rand(1000)
    return Work(lambda: (time.sleep(0.01), data * 2)[1], inputs=data, bytes=8000, flops=1000)

@scenario.variant
def two(lab):
    data = torch.rand(1000)
    return Work(lambda: (time.sleep(0.01), data + data)[1], inputs=data, bytes=8000, flops=1000)
"""
# Without declared work no ceilings are measured beside it, which would only take time.
PLAIN = STEPS.replace(", bytes=8000, flops=1000", "")


def run(lab, *arguments, gpu="0", time_s="1.5", declared=False):
    """A run with telemetry; its work is declared only where that matters, since ceilings are measured then."""
    path = lab.write("steps.py", STEPS if declared else PLAIN)
    return lab.run(path, "--telemetry", gpu, *arguments, time_s=time_s)


def test_a_gpu_is_read_beside_the_run_and_while_each_variant_is_alone(lab, driver):
    done = run(lab)
    assert done.code == 0
    found = done.run["telemetry"]
    assert (found["gpu"], found["uuid"]) == ("NVIDIA Stand-in H100", "GPU-stand-in-0")
    assert found["limits"]["power"] == 700
    assert found["unsupported"] == {}
    soak = done.variant("two")["soak"]
    assert {"sm": 10, "occupancy": 15, "tensor": 25, "dram": 50, "power": 410}.items() <= soak["means"].items()
    assert soak["means"]["worker_cpu"] < 50  # its steps sleep
    assert soak["energy_j"] == pytest.approx(350 * soak["time_s"], rel=0.1)
    assert "SM %" in done.stderr
    assert "J/item" in done.stderr


def test_without_gpm_there_are_rates_derived_from_declared_work(lab, driver):
    driver("nosup=gpm")
    done = run(lab, time_s="0.5", declared=True)
    assert done.code == 0
    assert done.run["telemetry"]["unsupported"]["sm"] == "not supported by this device"
    assert "FLOP/s, derived" in done.stderr
    live = printed(Rows(done.state, Glyphs()), 120)
    assert "derived from declared work: one" in live
    assert "FLOP/s" in live
    assert any("pcie_tx" in one.values for one in done.state.telemetry)


def test_a_gpu_that_is_lost_is_said_and_the_run_ends_normally(lab, driver):
    driver("lost=60")
    done = run(lab)
    assert done.code == 0
    assert done.run["telemetry"]["lost"].startswith("GPU lost: the kernel's log (dmesg)")
    assert done.verdict("two") is not None
    readings = [event for event in read(done.run_file).events if type(event).__name__ == "Telemetry"]
    assert "sm" in readings[1].values
    assert "sm" not in readings[-1].values
    assert "worker_cpu" in readings[-1].values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("init=18", "the driver was updated: reboot, or reload its module"),
        ("init=9", "the NVIDIA driver is not loaded"),
        ("gpus=0", "the driver knows no such GPU"),
    ],
)
def test_a_driver_that_does_not_start_is_explained(lab, driver, text, message):
    driver(text)
    done = run(lab, time_s="1")
    assert done.code == 0
    assert message in done.run["telemetry"]["why"]
    assert message in done.stderr
    assert done.variant("two")["soak"]["means"]["rss"] > 0


def test_without_a_driver_the_host_is_shown_and_one_line_says_why(lab):
    done = run(lab, time_s="1")
    assert done.code == 0
    assert done.stderr.count("no telemetry of a GPU: no NVIDIA driver found: telemetry shows the host only") == 1
    assert "worker CPU %" in done.stderr


def test_on_a_cpu_the_host_is_the_telemetry(lab, driver):
    done = run(lab, gpu="on", time_s="0.3")
    assert done.run["telemetry"]["gpu"] is None
    assert done.run["telemetry"]["why"] == "the run is on the CPU"


@pytest.mark.parametrize(
    ("text", "status", "found", "mend"),
    [
        ("", "ok", "999.01, NVIDIA Stand-in H100 (GPU-stand-in-0)", ""),
        ("init=18", "broken", "the driver was updated: reboot, or reload its module", "reboot"),
        ("lost=0", "broken", "GPU lost: the kernel's log (dmesg) has its Xid line", "nvidia-smi"),
    ],
)
def test_the_doctor_explains_the_driver(lab, driver, text, status, found, mend):
    driver(text)
    findings = json.loads(lab.call("--doctor", "--json").stdout)
    of_driver = next(one for one in findings if one["name"] == "driver")
    assert of_driver["status"] == status
    assert found in of_driver["found"]
    assert mend in of_driver["mend"]


def test_off_is_off(lab, driver):
    done = run(lab, gpu="off", time_s="0.3")
    assert done.run["telemetry"] is None
    assert done.variant("two")["soak"] is None


def test_slow_calls_make_fewer_readings_and_hold_up_nothing(lab, driver):
    driver("slow=500")
    done = run(lab, time_s="0.5")
    assert done.code == 0
    assert done.verdict("two") is not None
    assert done.run["telemetry"]["why"] == "the driver did not answer before the run ended"


def test_a_gpu_that_is_never_its_own_leaves_nothing_to_believe(lab, driver):
    driver("reasons=0x40")
    done = run(lab, time_s="0.5")
    assert done.code == 7
    assert done.verdict("two") == "invalid"
    assert "pairs dropped" in done.run["comparisons"][0]["reason"]
    assert done.variant("two")["time_s"] is None or done.variant("two")["time_s"]["low"] is None
    assert done.variant("two")["soak"]["clocks"] == "T"


def test_gpm_that_is_claimed_and_fails_is_left_out(lab, driver):
    driver("gpm=3")
    done = run(lab, time_s="0.5")
    assert done.code == 0
    assert done.run["telemetry"]["unsupported"]["sm"] == "not supported by this device"
    assert done.variant("two")["soak"]["means"]["power"] == 410


def test_of_two_gpus_the_one_that_is_asked_for_is_sampled(lab, driver):
    driver("gpus=2")
    done = run(lab, gpu="GPU-stand-in-1", time_s="0.3")
    assert done.code == 0
    assert done.run["telemetry"]["uuid"] == "GPU-stand-in-1"


def test_the_gpu_that_the_worker_names_is_the_one_that_is_sampled(lab, driver, monkeypatch):
    driver("gpus=2")
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    sampler = Sampler("on")
    device = Device(kind="cuda", name="second", uuid="GPU-stand-in-1")
    sampler.target(WorkerReady(pid=os.getpid(), device=device, environment={}))
    assert select.select([sampler.fd], [], [], 30)[0]
    events, _ = sampler.take()
    sampler.stop()
    assert events[0].uuid == "GPU-stand-in-1"


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["reasons=0x40", "counter=270", "procs=1"])
def test_what_ran_while_the_gpu_was_not_its_own_is_dropped(lab, driver, behaviour):
    path = lab.write("steps.py", PLAIN)
    run_file = lab.folder / "run.jsonl"
    options = (
        "--device",
        "cpu",
        "--telemetry",
        "0",
        "--time",
        "8",
        "--profile",
        "off",
        "--json",
        "out.json",
        "--output",
        run_file,
    )
    process = lab.start("--run", path, *options)
    began = raised = lowered = 0.0
    while process.poll() is None:
        if not began and run_file.exists() and b'"type":"Planned"' in run_file.read_bytes():
            began = time.monotonic()
        if began and not raised and time.monotonic() > began + 2.5:
            driver(behaviour)
            raised = time.monotonic()
        if raised and not lowered and time.monotonic() > raised + 2.8:
            driver("")
            lowered = time.monotonic()
        time.sleep(0.02)
    process.communicate()
    assert process.returncode == 7
    found = json.loads((lab.folder / "out.json").read_text())["runs"][0]
    assert {one["verdict"] for one in found["comparisons"]} == {"invalid"}
    assert any("dropped" in text for text in found["warnings"])
    state = fold_all(read(run_file).events)
    period = 2.1 if behaviour.startswith("procs") else 0.25
    windows = state.windows
    for epoch in state.epochs:
        kept = epoch.outside(windows)
        for whole, part, spans in zip(epoch.rounds, kept.rounds, epoch.spans, strict=True):
            for name in whole:
                start, end = spans[name]
                if start > raised + 0.01 and end < lowered - 0.01:
                    assert name not in part
                if end < raised - period or start > lowered + period:
                    assert name in part
    dropped = [one["dropped"] / (one["pairs"] + one["dropped"]) for one in found["comparisons"]]
    # Processes are looked for every two seconds, so this one may be seen twice, and take six seconds along.
    most = 0.95 if behaviour.startswith("procs") else 0.7
    assert all(0.2 < share < most for share in dropped)


def test_a_power_cap_is_flagged_and_drops_nothing(lab, driver):
    driver("reasons=4")
    done = run(lab, time_s="0.5")
    assert done.code == 0
    assert any("power cap in" in text for text in done.run["warnings"])
    assert all(one["dropped"] == 0 for one in done.run["comparisons"])


def test_health_that_is_not_as_it_should_be_is_said(lab, driver):
    driver("width=8,ecc=2")
    done = run(lab, time_s="0.3")
    assert any("PCIe width 8 of 16" in text for text in done.run["warnings"])
    assert any("2 uncorrected memory errors" in text for text in done.run["warnings"])
    assert done.run["telemetry"]["health"]["pcie_width_max"] == 16


def test_a_sampler_that_dies_ends_telemetry_alone(lab, driver, monkeypatch):
    path = lab.write("steps.py", PLAIN)
    options = ("--device", "cpu", "--time", "2", "--profile", "off", "--json", "out.json", "--output", "run.jsonl")
    process = lab.start("--run", path, *options)
    recorded = lab.folder / "run.jsonl"
    wait_for(lambda: recorded.exists() and recorded.read_bytes().count(b'"type":"Telemetry"') > 3)
    for pid, command in lab.processes().items():
        if b"gpulab.telemetry" in command:
            os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == 0
    found = json.loads((lab.folder / "out.json").read_text())["runs"][0]
    assert found["telemetry"]["lost"] == "the telemetry process ended"
    assert found["comparisons"][0]["verdict"] != "invalid"


@pytest.mark.slow
def test_the_observer_effect_is_a_ratio_of_pairs(lab, driver):
    path = lab.write("steps.py", PLAIN)
    options = ("--device", "cpu", "--telemetry", "0", "--time", "12", "--json", "out.json", "--output", "run.jsonl")
    done = lab.call("--run", path, "--observer-effect", *options)
    assert done.code == 0
    found = json.loads((lab.folder / "out.json").read_text())
    assert found["pairs"] >= 8
    assert found["low"] <= found["ratio"] <= found["high"]
    assert 0.9 < found["ratio"] < 1.1
    assert "observer effect of telemetry on steps" in done.stdout
