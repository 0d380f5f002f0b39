"""`gpulab.run` and `gpulab.load`: the report of the command line, for scripts and notebooks."""

import doctest
import json
import sys

import pytest
from scripted import SCENARIO, CommandLine

import gpulab
from gpulab.catalog.catalog import ScenarioNotFoundError
from gpulab.core.events import RunEnded
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.core.statuses import Status
from gpulab.session.run import Run
from gpulab.session.settings import UsageError


@pytest.fixture
def command(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


def test_the_example_of_the_package_holds(lab, monkeypatch):
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(lab.folder)
    (example,) = doctest.DocTestFinder(recurse=False).find(gpulab, "gpulab")
    runner = doctest.DocTestRunner()
    runner.run(example, clear_globs=False)
    assert (runner.failures, runner.tries) == (0, len(example.examples))
    report = example.globs["report"]
    statuses = {variant.name: variant.status for variant in report.variants}
    assert statuses == {"loop": Status.OK, "graphed": Status.SKIPPED, "bmm": Status.OK}
    assert (report.smoke, report.under_way, report.failures) == (True, False, [])
    assert set(report.environment) >= {"gpulab", "python", "torch", "driver"}
    assert report.comparison("bmm").pairs > 0
    # Without a GPU the host is the telemetry.
    assert report.telemetry.no_gpu_reason.code == "run_on_cpu"
    assert {"worker_cpu", "machine_cpu", "rss"} <= set(report.telemetry.last)
    assert report.variant("bmm").solo_run is None


def test_a_report_has_the_shape_of_a_run_in_the_json(command):
    report = gpulab.run(
        "mine.py", time_s=0.2, telemetry="off", params={"n": 50}, required_speedup=3.0
    )
    process = command(
        "--run",
        "mine.py",
        "--time",
        "0.2",
        "--set",
        "n=50",
        "--fail-below",
        "3",
        "--json",
        "out.json",
    )
    (run,) = process.result["runs"]
    other = json.loads(gpulab.to_json(report))
    assert shape(other) == shape(run)
    assert (other["params"], other["exit_code"], other["reason"]) == (
        run["params"],
        run["exit_code"],
        run["reason"],
    )
    assert report.params["n"] == 50
    assert report.reason.code == "below_required"


def shape(value):
    """Keys, and what is a list."""
    if isinstance(value, dict):
        left_out = ("values", "telemetry", "findings", "explanations", "earlier")
        return {key: shape(member) for key, member in value.items() if key not in left_out}
    return [shape(member) for member in value] if isinstance(value, list) else None


def test_a_failure_is_a_report(command, lab):
    failed = gpulab.run(
        "mine.py", time_s=0.2, telemetry="off", params={"fails_at": 100}, output="run.jsonl"
    )
    assert (failed.exit_code, failed.variant("after").status) == (3, "failed")
    assert gpulab.load("run.jsonl") == failed
    lab.write("cuda.py", SCENARIO.replace('"mine",', '"mine", needs=("cuda",),'))
    unmet = gpulab.run(lab.folder / "cuda.py", device="cpu")
    assert (unmet.exit_code, unmet.reason.values["need"], unmet.run_file) == (3, "cuda", "")


@pytest.mark.parametrize(
    ("scenario", "options", "error"),
    [
        ("nothing_such", {}, ScenarioNotFoundError),
        ("all", {}, UsageError),
        ("mine.py", {"params": {"q": 1}}, UsageError),
        ("mine.py", {"device": "tpu"}, UsageError),
        ("mine.py", {"output": "mine.py"}, UsageError),
    ],
)
def test_arguments_that_make_no_sense_raise(command, scenario, options, error):
    with pytest.raises(error):
        gpulab.run(scenario, **options)


def test_a_file_that_is_none_raises(command):
    with pytest.raises(RunFileError, match="not a run file"):
        gpulab.load("mine.py")
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = gpulab.lode


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_or_an_error_stops_the_run_and_its_file_is_whole(
    error, lab, monkeypatch, capsys
):
    lab.write("mine.py", SCENARIO)
    CommandLine(
        lab, monkeypatch, capsys, worker=(sys.executable, "-c", "import time; time.sleep(600)")
    )
    monkeypatch.setattr("gpulab.session.session._LAST_WORD_S", 0.3)

    def interrupt(run):
        raise error

    monkeypatch.setattr(Run, "poll", interrupt)
    with pytest.raises(error):
        gpulab.run("mine.py", telemetry="off", output="run.jsonl")
    assert isinstance(read_run_file(lab.folder / "run.jsonl").events[-1], RunEnded)
    assert lab.none_left()
