"""A request holds what a run needs; every mistake in the settings is found before anything runs."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
from found import finding
from scenario_files import FUNCTIONS, SCENARIO, write

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import Calibrate, Measure, ProfileOptions, TimeFunctions
from gpulab.core.limits import SOURCE_BYTES
from gpulab.core.statuses import CeilingChoice, Clock
from gpulab.options import Options, UsageError, flag_of
from gpulab.session import requests, settings
from gpulab.session.following import entry_of
from gpulab.session.requests import calibration_request, request_for, values_to_sweep

SWEEP = 'sweep={"n": (16, 64), "ratio": (0.25, 0.5)},'


@pytest.fixture(autouse=True)
def _machine_with_a_gpu(monkeypatch):
    """Needs are met, but for those of a run on the CPU."""
    monkeypatch.setattr(settings, "missing", lambda need: None)
    reason = finding("run_on_cpu", need="cuda")
    monkeypatch.setattr(
        requests,
        "first_missing",
        lambda needs, device: reason if needs and device == "cpu" else None,
    )


@pytest.fixture
def request_of(tmp_path):
    def build(text=SCENARIO, functions=(), **options):
        entry = read_file(write(tmp_path / "x.py", text))
        return request_for(entry, Options(**{"device": "cpu", **options}), functions)

    return build


def test_a_scenario_is_measured_with_what_its_file_says(request_of):
    job = request_of(threads=2, seed=3).job
    assert isinstance(job, Measure)
    subject = job.subject
    assert (subject.scenario, subject.topic, subject.no_effect_reason) == (
        "x",
        "mine",
        "it is small",
    )
    assert subject.title == "Twice: one multiplication and two."
    assert sha256(subject.source.encode()).hexdigest() == subject.source_sha256
    assert subject.source == SCENARIO
    assert (job.device, job.threads, job.seed, job.per, job.roof) == ("cpu", 2, 3, "item", None)
    two, one, on_gpu, scale = subject.variants
    assert [variant.against for variant in subject.variants] == [None, "two", "one", None]
    assert (two.summary, one.claim, one.unchecked) == ("Two multiplications.", "2x", "it is random")
    assert (on_gpu.missing, scale.missing) == (finding("run_on_cpu", need="cuda"), None)


def test_the_clock_of_the_device_is_taken_on_a_device_only(request_of):
    assert request_of().job.clock == Clock.WALL
    assert request_of(device="cuda").job.clock == Clock.DEVICE
    assert request_of(device="cuda").job.device == "cuda:0"
    assert request_of(device="cuda:1").job.device == "cuda:1"


def test_parameters_come_from_the_scenario_the_cpu_the_smoke_run_and_then_the_user(request_of):
    assert request_of(device="cuda").job.subject.params["n"] == 4096
    assert request_of().job.subject.params["n"] == 64
    assert request_of(smoke=True).job.subject.params["n"] == 1
    assert request_of(smoke=True, chosen={"n": "2 * 4"}).job.subject.params["n"] == 8
    chosen = {"n": "8.0", "ratio": "2", "name": "7", "flag": "true"}
    assert request_of(chosen=chosen).job.subject.params == {
        "n": 8,
        "ratio": 2.0,
        "name": "7",
        "flag": True,
    }


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"n": "1.5"}, "n=1.5: n takes a whole number, as in n=64"),
        ({"n": "True"}, "n takes a whole number"),
        ({"ratio": "'a'"}, "ratio takes a number, as in ratio=0.5"),
        ({"flag": "maybe"}, "flag takes true or false"),
        ({"ratio": "1e999"}, "ratio takes a number, as in ratio=0.5 .not a finite number"),
    ],
)
def test_a_parameter_that_is_none_is_a_usage_error(request_of, chosen, message):
    with pytest.raises(UsageError, match=message):
        request_of(chosen=chosen)


@pytest.mark.parametrize(
    ("functions", "text", "message"),
    [
        ((), FUNCTIONS, r"x\.py has no Scenario"),
        ([f"f{number}" for number in range(300)], FUNCTIONS, "300 functions, and one run takes"),
        (["nothing"], SCENARIO, "it defines scenario, two, one, on_gpu, scale"),
        (["nothing"], "import os\n", "the file defines no functions"),
    ],
)
def test_functions_that_are_not_there_are_a_usage_error(request_of, functions, text, message):
    with pytest.raises(UsageError, match=message):
        request_of(text, functions)


@pytest.mark.parametrize(
    ("text", "source", "swept"),
    [
        ("n=1, 2,2,", SCENARIO, ("n", ["1", "2"])),
        ("n", SCENARIO, ("n", ["16", "64"])),
        ("", SCENARIO.replace(SWEEP, 'sweep={"n": (16, 64)},'), ("n", ["16", "64"])),
        ("", SCENARIO, "its own: n, ratio.; write --sweep name=a,b,c"),
        ("name", SCENARIO, "--sweep name: x has no sweep of it .*; write --sweep name=a,b,c"),
        ("n= , ", SCENARIO, "it has no values; write n=a,b,c"),
        ("n=1", FUNCTIONS, r"--sweep requires a scenario, and x\.py has none"),
    ],
)
def test_values_to_sweep_are_given_or_the_scenarios_own(tmp_path, text, source, swept):
    entry = read_file(write(tmp_path / "x.py", source))
    if isinstance(swept, tuple):
        assert values_to_sweep(entry, text) == swept
        return
    with pytest.raises(UsageError, match=swept):
        values_to_sweep(entry, text)


@pytest.mark.parametrize(
    ("options", "time_s", "timeout_s", "ceilings"),
    [
        ({}, 10.0, None, CeilingChoice.NEEDED),
        ({"time_s": 60.0}, 60.0, None, CeilingChoice.NEEDED),
        ({"time_s": 0.9}, 0.9, None, CeilingChoice.NONE),
        ({"quick": True}, 1.5, None, CeilingChoice.NEEDED),
        ({"smoke": True}, 0.5, None, CeilingChoice.NONE),
        ({"smoke": True, "time_s": 5.0, "timeout_s": 9.0}, 5.0, 9.0, CeilingChoice.NONE),
    ],
)
def test_how_long_a_run_may_take_and_whether_ceilings_are_worth_it(
    request_of, options, time_s, timeout_s, ceilings
):
    request = request_of(**options)
    assert (request.job.time_s, request.timeout_s, request.job.ceilings) == (
        time_s,
        timeout_s,
        ceilings,
    )


@pytest.mark.parametrize(
    ("options", "telemetry"),
    [
        ({}, "on"),
        ({"telemetry": "off"}, "off"),
        ({"telemetry": "GPU-1"}, "GPU-1"),
        ({"quick": True}, "off"),
        ({"quick": True, "telemetry": "GPU-1"}, "GPU-1"),
    ],
)
def test_variants_run_alone_where_there_is_telemetry(request_of, options, telemetry):
    request = request_of(**options)
    assert request.telemetry == telemetry
    assert request.job.solo_runs is (telemetry != "off")


@pytest.mark.parametrize(
    ("options", "profile"),
    [
        ({}, ProfileOptions(every=False)),
        ({"quick": True}, ProfileOptions(every=False)),
        ({"profile": "all"}, ProfileOptions()),
        ({"profile": "off"}, None),
        ({"smoke": True}, None),
        ({"time_s": 0.9}, None),
        ({"profile": "off", "memory": True}, ProfileOptions(memory="")),
        ({"smoke": True, "trace": Path("/tmp/t.json")}, ProfileOptions(trace="/tmp/t.json")),
    ],
)
def test_a_run_ends_with_a_profile_where_it_is_long_enough_or_asked_for(
    request_of, options, profile
):
    assert request_of(**options).profile == profile


def test_counters_are_of_a_variant_that_is_there(request_of):
    assert request_of().job.counters is None
    assert request_of(ncu="").job.counters.variant == ""
    with pytest.raises(UsageError, match="--ncu c: no such variant; it has"):
        request_of(ncu="c")


def test_a_trace_is_named_from_the_root(request_of):
    assert Path(request_of(trace=Path("t.json")).profile.trace).is_absolute()


@pytest.mark.parametrize(("given", "interval_s"), [(None, None), ("50us", 50e-6), ("2e-05", 2e-5)])
def test_counters_are_sampled_where_they_are_asked_for(request_of, given, interval_s):
    value = None if given is None else flag_of("counters").value(given, "--counters ")
    assert request_of(counters=value).counters_s == pytest.approx(interval_s)


def test_functions_are_timed_and_nothing_is_compared(request_of):
    job = request_of(FUNCTIONS, ["step", "scale"]).job
    assert isinstance(job, TimeFunctions)
    assert job.subject.scenario == "x:step,scale"
    assert [variant.name for variant in job.subject.variants] == ["step", "scale"]
    assert [variant.against for variant in job.subject.variants] == [None, None]


def test_a_calibration_measures_the_device_and_nothing_else():
    request = calibration_request(Options(device="cpu", threads=1, seed=3, telemetry="off"))
    assert request.job == Calibrate(device="cpu", threads=1, seed=3)
    assert (request.telemetry, request.timeout_s, request.profile) == ("off", None, None)


def test_a_program_that_is_a_pipe_or_endless_is_not_read(tmp_path):
    pipe = tmp_path / "pipe.py"
    os.mkfifo(pipe)
    endless = tmp_path / "endless.py"
    endless.symlink_to("/dev/zero")
    for path in (pipe, endless):
        entry = entry_of([str(path)])
        assert (entry.name, entry.source) == (path.name, "")
    large = write(tmp_path / "large.py", "#" * (SOURCE_BYTES + 1))
    assert entry_of(["python", str(large)]).source == ""
