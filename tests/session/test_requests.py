"""A request holds what a run needs; every mistake in the settings is found before anything runs."""

import os
from hashlib import sha256
from pathlib import Path

import pytest
from found import finding
from scenario_files import FUNCTIONS, SCENARIO, write

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import Calibrate, Measure, ProfileOptions
from gpulab.core.limits import SOURCE_BYTES
from gpulab.core.statuses import CeilingChoice, Clock
from gpulab.options import Settings
from gpulab.session import requests, settings
from gpulab.session.following import entry_of
from gpulab.session.requests import calibration_request, request_for, values_to_sweep
from gpulab.session.settings import UsageError

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
        return request_for(entry, Settings(**{"device": "cpu", **options}), functions)

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
    ("options", "message"),
    [
        (
            {"chosen": {"mb": "1"}},
            "x has no parameter 'mb'; its parameters: n=64, ratio=0.5, name='x', flag=False",
        ),
        ({"chosen": {"n": "many"}}, "n=many: n takes a whole number, as in n=64"),
        ({"chosen": {"flag": "maybe"}}, "flag takes true or false"),
        (
            {"chosen": {"n": "9**64**64"}},
            "takes a whole number, as in n=64 .a whole number beyond 9223372036854775807",
        ),
        ({"chosen": {"n": "(" * 3000}}, "n takes a whole number, as in n=64 .not a literal"),
        ({"chosen": {"name": "x" * 4097}}, "a text has at most 4096 characters"),
        ({"time_s": 1e300}, "--time 1e.300: write seconds above 0, and at most 604800"),
        ({"time_s": float("nan")}, "--time nan: write seconds"),
        ({"device": "gpu"}, "--device gpu: write cpu, cuda or cuda:N"),
        ({"threads": 10**6}, "1000000 threads: this process may use"),
        ({"text": FUNCTIONS}, r"x\.py has no Scenario"),
        (
            {"functions": ["nothing"]},
            "defines no 'nothing' at its top level; it defines scenario, two, one, on_gpu, scale",
        ),
        ({"functions": ["nothing"], "text": "import os\n"}, "the file defines no functions"),
        ({"functions": ["step", "step"], "text": FUNCTIONS}, "step,step: name each function once"),
    ],
)
def test_a_mistake_in_the_request_is_a_usage_error(request_of, options, message):
    with pytest.raises(UsageError, match=message):
        request_of(**options)


def test_a_device_that_is_not_there_has_a_reason(request_of, monkeypatch):
    monkeypatch.setattr(settings, "missing", lambda need: finding("no_gpu"))
    with pytest.raises(UsageError, match=r"cuda:1 is not available here \(cpu is\)") as caught:
        request_of(device="cuda:1")
    assert caught.value.reason == finding("no_gpu")
    assert request_of(device="cpu").job.device == "cpu"


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


def test_a_calibration_measures_the_device_and_nothing_else():
    request = calibration_request(Settings(device="cpu", threads=1, seed=3, telemetry="off"))
    assert request.job == Calibrate(device="cpu", threads=1, seed=3)
    assert (request.telemetry, request.timeout_s, request.profile) == ("off", None, None)
    with pytest.raises(UsageError, match="write cpu, cuda or cuda:N"):
        calibration_request(Settings(device="tpu"))


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("n=1, 2,2,", "n", ["1", "2"]),
        ("n", "n", ["16", "64"]),
        ("name=a,b", "name", ["a", "b"]),
    ],
)
def test_values_to_sweep_are_given_or_the_scenarios_own(tmp_path, text, name, values):
    assert values_to_sweep(read_file(write(tmp_path / "x.py")), text) == (name, values)


@pytest.mark.parametrize(
    ("text", "source", "message"),
    [
        (
            "",
            SCENARIO,
            "x has several, name one: n=16,64; ratio=0.25,0.5; write --sweep name=a,b,c",
        ),
        ("", SCENARIO.replace(SWEEP, ""), "x has no sweep of its own"),
        ("name", SCENARIO, "--sweep name: x has no sweep of it; write --sweep name=a,b,c"),
        ("n= , ", SCENARIO, "it has no values; write --sweep n=a,b,c"),
        (
            "n=" + ",".join(map(str, range(201))),
            SCENARIO,
            "--sweep n: 201 values, and one sweep takes at most 200",
        ),
        ("m" * 9000, SCENARIO, "8900 more characters.: x has no sweep of it"),
        ("n=1", FUNCTIONS, r"--sweep requires a scenario, and x\.py has none"),
    ],
)
def test_a_sweep_that_cannot_be_made_is_a_usage_error(tmp_path, text, source, message):
    with pytest.raises(UsageError, match=message):
        values_to_sweep(read_file(write(tmp_path / "x.py", source)), text)


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


def test_a_run_that_asks_for_no_time_and_no_width_ends_once_it_is_decided(request_of):
    assert request_of().job.brief
    assert not request_of(time_s=10.0).job.brief
    assert not request_of(width=0.01).job.brief
