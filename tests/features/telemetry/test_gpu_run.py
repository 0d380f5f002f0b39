"""A whole run beside a stand-in GPU that is capped, and for a while slowed down: everything that
this does to it.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from conftest import printed, wait_for
from recorded import report_of
from workers import WORKERS

from gpulab.core.events import Samples
from gpulab.core.run_file import read_run_file
from gpulab.features.telemetry.events import Telemetry
from gpulab.features.telemetry.report import add_windows
from gpulab.report.samples import InvalidWindows
from gpulab.report.sentences import lines
from gpulab.show.parts import Shown, Target, result

# Times that vary keep intervals wide, so that the run takes its whole time.
STEPS = """
    import random, time
    import torch
    from gpulab import Scenario, Work
    scenario = Scenario("test")

    @scenario.variant
    def one(lab):
        data = torch.rand(1000)
        return Work(lambda: (time.sleep(random.uniform(0.004, 0.006)), data * 2)[1], inputs=data)

    @scenario.variant
    def two(lab):
        data = torch.rand(1000)
        return Work(lambda: (time.sleep(random.uniform(0.004, 0.006)), data + data)[1], inputs=data)
"""
DEVICE = "gpus=2,width=8,ecc=2,reasons={reasons:#x}"
CAPPED, SLOWED = 0x4, 0x44
PERIOD_S = 0.2


@pytest.fixture(scope="module")
def measured(module_lab, standin):
    """The run, its events, and between which moments the GPU was slowed down for sure."""
    lab, says = module_lab, module_lab.folder / "standin"

    def behave(reasons):
        says.with_suffix(".new").write_text(DEVICE.format(reasons=reasons))
        says.with_suffix(".new").rename(says)

    behave(CAPPED)
    lab.env |= {"LD_LIBRARY_PATH": str(standin), "STANDIN": f"@{says}"}
    options = (
        "--device",
        "cpu",
        "--telemetry",
        "GPU-stand-in-1",
        "--time",
        "1",
        "--profile",
        "off",
    )
    run_file = lab.folder / "run.jsonl"

    def has_processes(count):
        started = b'"type":"ProcessStarted"'
        return run_file.exists() and run_file.read_bytes().count(started) >= count

    def slow_down():
        """While three of eight or more processes measure, however long they take."""
        wait_for(lambda: has_processes(4))
        behave(SLOWED)
        raised = time.monotonic()
        time.sleep(0.5)
        wait_for(lambda: has_processes(7))
        lowered = time.monotonic()
        behave(CAPPED)
        return raised, lowered

    with ThreadPoolExecutor() as pool:
        moments = pool.submit(slow_down)
        path = lab.write("steps.py", STEPS)
        files = ("--json", lab.folder / "out.json", "--output", run_file)
        finished = lab.call_over(WORKERS.command, "--run", path, *options, *files)
        raised, lowered = moments.result()
    return SimpleNamespace(
        code=finished.code,
        run=json.loads((lab.folder / "out.json").read_text())["runs"][0],
        events=read_run_file(run_file).events,
        raised=raised,
        lowered=lowered,
        stdout=finished.stdout,
    )


@pytest.mark.slow
def test_the_gpu_that_was_asked_for_is_read_beside_the_run(measured):
    telemetry = measured.run["telemetry"]
    assert (telemetry["gpu"], telemetry["uuid"]) == ("NVIDIA Stand-in H100", "GPU-stand-in-1")
    assert telemetry["limits"]["power_w"] == 700
    assert (telemetry["unsupported"], telemetry["lost"], telemetry["no_gpu_reason"]) == (
        {},
        None,
        None,
    )
    assert (telemetry["stale"], telemetry["age_s"]) == (False, None)  # sampling has ended
    assert (telemetry["clocks"], telemetry["slowed"]) == ("P", True)


@pytest.mark.slow
def test_each_variant_is_read_while_it_runs_alone(measured):
    for variant in measured.run["variants"]:
        solo = variant["solo_run"]
        shares = {"sm_percent": 10, "occupancy_percent": 15, "tensor_percent": 25}
        means = {**shares, "dram_percent": 50, "power_w": 410}
        assert means.items() <= solo["means"].items()
        assert solo["means"]["worker_cpu_percent"] < 50  # its steps sleep
        assert solo["energy_j"] == pytest.approx(350 * solo["time_s"]["value"], rel=0.2)
        assert solo["clocks"] == "P"
    (heads,) = (line for line in measured.stdout.splitlines() if "SM %" in line)
    assert "J/item" in heads
    assert "clocks" in heads
    assert "clocks: P power cap" in measured.stdout


@pytest.mark.slow
def test_the_health_of_the_device_and_its_power_cap_are_findings(measured):
    findings = {finding["code"]: finding["values"] for finding in measured.run["findings"]}
    assert findings["pcie_narrow"] == {"width": 8, "full": 16}
    assert findings["ecc_errors"] == {"count": 2}
    capped = findings["power_capped"]
    assert capped["capped"] == capped["readings"] > 0
    assert measured.run["telemetry"]["health"]["pcie_width_max"] == 16


@pytest.mark.slow
def test_what_ran_while_the_gpu_was_slowed_down_is_dropped_and_nothing_far_from_it(measured):
    windows = windows_of(measured.events)
    assert {window.code for window in windows} == {"clocks_slowed"}
    spans = blocks(measured.events)
    inside = [
        span
        for span in spans
        if measured.raised + 0.01 < span[0] and span[1] < measured.lowered - 0.01
    ]
    readings = [event.t for event in measured.events if isinstance(event, Telemetry)]
    # From the reading before it to the second one after it.
    first = max(t for t in readings if t < measured.raised) - PERIOD_S
    last = [t for t in readings if t > measured.lowered][1]
    outside = [span for span in spans if span[1] < first or span[0] > last]
    assert inside
    assert outside
    assert all(
        any(window.start <= start and end <= window.end for window in windows)
        for start, end in inside
    )
    assert not any(
        window.start < end and window.end > start for window in windows for start, end in outside
    )


@pytest.mark.slow
def test_too_many_dropped_pairs_leave_nothing_to_believe(measured):
    (comparison,) = measured.run["comparisons"]
    assert comparison["dropped"] / (comparison["pairs"] + comparison["dropped"]) > 0.2
    assert (measured.code, comparison["verdict"], comparison["speedup"]) == (7, "invalid", None)
    assert comparison["reason"]["code"] == "pairs_dropped"
    (slowed,) = (
        finding for finding in measured.run["findings"] if finding["code"] == "clocks_slowed"
    )
    assert 0 < slowed["values"]["dropped"] < slowed["values"]["blocks"]
    assert "thermal slowdown by the hardware: " in measured.stdout


def windows_of(events):
    """All of a run: its state holds those alone that may still drop a block."""
    windows = InvalidWindows()
    for event in events:
        if isinstance(event, Telemetry):
            add_windows(windows, event)
    return windows.all()


def blocks(events):
    """(start, end) of every timed block."""
    batches = [event for event in events if isinstance(event, Samples)]
    return [
        (end - time_s * steps, end)
        for batch in batches
        for end, time_s, steps in zip(batch.ended, batch.times_s, batch.steps, strict=True)
    ]


def test_a_power_cap_alone_drops_nothing(tmp_path):
    report = report_of("standin-capped", tmp_path)
    assert [finding.code for finding in report.findings].count("power_capped") == 1
    assert [comparison.dropped for comparison in report.comparisons] == [0, 0, 0]
    assert report.exit_code == 0


def test_without_gpm_there_are_rates_derived_from_declared_work(tmp_path):
    report = report_of("standin-no-gpm", tmp_path)
    assert "sm" in report.telemetry.unsupported
    for variant in report.variants:
        assert variant.solo_run.flops_per_s == pytest.approx(
            variant.flops / variant.solo_run.time_s.value
        )
        assert variant.flops_per_s == pytest.approx(variant.flops / variant.time_s.value)
    text = printed(result(Shown(report, Target.TERMINAL)), 160)
    assert "FLOP/s, derived" in text
    assert "B/s, derived" in text
    assert "SM %" not in text


def test_without_a_gpu_one_line_says_so_and_the_host_is_shown(tmp_path):
    report = report_of("lesson-batched_matmul", tmp_path)
    text = printed(result(Shown(report, Target.TERMINAL)), 160)
    assert text.count("no GPU telemetry: ") == 1
    assert "worker CPU %" in text


def test_a_gpu_that_was_lost_is_a_finding_of_a_run_that_ended_well(tmp_path):
    report = report_of("standin-lost", tmp_path)
    assert (report.exit_code, report.telemetry.lost is None) == (0, False)
    (line,) = (
        line for line in lines(report.findings) if line.startswith("GPU telemetry ended early")
    )
    assert "GPU lost: see its Xid line in the kernel log (dmesg)" in line
    assert report.telemetry.last["sm"] > 0  # the last that was known of it
