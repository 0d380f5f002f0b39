"""The flat request of version 1 becomes a job with its subject: measure, time functions, or calibrate."""

import json

import pytest

from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import (
    Calibrate,
    FunctionFile,
    Measure,
    ProfileOptions,
    ScenarioFile,
    TimeFunctions,
    VariantInfo,
)
from gpulab.protocol.statuses import Cache, CeilingChoice, Clock
from gpulab.protocol.version_1 import decode_version_1

MISSING = "needs cuda: no NVIDIA device in this machine"
FILE = {"path": "lesson.py", "source_sha256": "ab"}
REQUEST = {
    **FILE,
    "scenario": "lesson",
    "title": "Lesson: a title",
    "variants": [{"name": "a"}, {"name": "b", "against": "a", "claim": "2x", "missing": MISSING}],
    "topic": "compute",
    "claim": "3x",
    "same": "nothing to gain on a CPU",
    "params": {"n": 64},
    "env": {"A": "1"},
    "device": "cuda:0",
    "threads": 2,
    "seed": 7,
    "time_s": 5.0,
    "clock": "device",
    "cache": "cold",
    "smoke": True,
    "quick": True,
    "stop_early": False,
    "ceilings": "needed",
    "roof": "cache",
    "per": "item",
    "ladder": True,
    "alone": True,
    "grows": True,
    "telemetry": "GPU-1",
    "timeout_s": 60.0,
    "profile": True,
    "trace": "t.json",
    "memory": "m",
}


def upgraded(request):
    line = json.dumps({"type": "RunStarted", "t": 1.0, "at": "", "host": "h", "request": request})
    return decode_version_1(line.encode()).request


def test_a_scenario_is_measured():
    request = upgraded(REQUEST)
    subject = ScenarioFile(
        **FILE,
        scenario="lesson",
        title="Lesson: a title",
        variants=(
            VariantInfo(name="a"),
            VariantInfo(name="b", against="a", claim="2x", missing=finding("text", text=MISSING)),
        ),
        topic="compute",
        claim="3x",
        no_effect_reason="nothing to gain on a CPU",
        params={"n": 64},
        env={"A": "1"},
    )
    assert request.job == Measure(
        subject=subject,
        device="cuda:0",
        threads=2,
        seed=7,
        time_s=5.0,
        clock=Clock.DEVICE,
        cache=Cache.COLD,
        smoke=True,
        quick=True,
        stop_early=False,
        solo_runs=True,
        ceilings=CeilingChoice.NEEDED,
        roof="cache",
        per="item",
        ladder=True,
        exclusive=True,
        increasing_memory=True,
    )
    assert (request.telemetry, request.timeout_s) == ("GPU-1", 60.0)
    assert request.profile == ProfileOptions(trace="t.json", memory="m")


def test_plain_functions_are_timed():
    flat = {**FILE, "scenario": "train:step", "functions": True, "variants": [{"name": "step"}], "telemetry": "off"}
    request = upgraded(flat)
    subject = FunctionFile(**FILE, scenario="train:step", variants=(VariantInfo(name="step"),))
    assert request.job == TimeFunctions(subject=subject, solo_runs=False, ceilings=CeilingChoice.NONE)
    assert (request.telemetry, request.timeout_s, request.profile) == ("off", None, None)


def test_a_request_for_all_ceilings_is_a_calibration():
    flat = {**FILE, "scenario": "calibration", "variants": [], "device": "cpu", "threads": 2, "ceilings": "all"}
    assert upgraded(flat).job == Calibrate(device="cpu", threads=2)


@pytest.mark.parametrize(("telemetry", "solo_runs"), [("on", True), ("0", True), ("off", False)])
def test_variants_ran_alone_where_there_was_telemetry(telemetry, solo_runs):
    assert upgraded({**REQUEST, "telemetry": telemetry}).job.solo_runs is solo_runs
