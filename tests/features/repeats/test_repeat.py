"""`--repeat`: whole runs of the same, one after the other, with the interval over them, and the
gate on it.
"""

import re

import pytest
from scripted import SCENARIO, CommandLine

from gpulab.headless import run
from gpulab.options import UsageError

QUIET = ("--time", "0.2", "--telemetry", "off", "--json", "out.json")


@pytest.fixture
def gpulab(lab, monkeypatch, capsys):
    lab.write("mine.py", SCENARIO)
    return CommandLine(lab, monkeypatch, capsys)


def test_eight_runs_of_the_same_give_an_interval_over_runs(lab, gpulab):
    options = ("--repeat", "8", "--output", "runs", "--fail-below", "1.9x")
    process = gpulab("--run", "mine.py", *options, *QUIET)
    assert process.code == 0
    assert [report["outcome"] for report in process.result["runs"]] == ["measured"] * 8
    (entry,) = process.result["over_runs"]
    assert (entry["variant"], entry["against"], entry["runs"], len(entry["speedups"])) == (
        "after",
        "before",
        8,
        8,
    )
    ends = {"value": 2.0, "low": 2.0, "high": 2.0, "n": 8}
    assert entry["speedup"] == pytest.approx(ends, rel=1e-4)
    assert entry["verdict"] == "faster"
    assert [file.name for file in sorted((lab.folder / "runs").iterdir())] == [
        f"mine-{n}.jsonl" for n in range(1, 9)
    ]
    assert re.search(r"over 8 runs in \d+ \w+, each in processes of its own", process.stdout)
    assert re.search(r"8 of 8 +mine +2\.00x faster +after", process.stderr)
    assert "run 1 of 8\nmine · Scripted" in process.stdout
    assert process.stdout.count("mine · Scripted") == 1  # the first in full
    earlier = [report["comparisons"][0]["earlier"] for report in process.result["runs"]]
    assert [entry and entry["runs"] for entry in earlier] == [None, 1, 2, 3, 4, 5, 6, 7]


def test_fewer_than_eight_have_a_range_and_settle_no_gate(gpulab):
    process = gpulab("--run", "mine.py", "--repeat", "3", "--fail-below", "1.2x", *QUIET)
    assert process.code == 6
    assert [report["exit_code"] for report in process.result["runs"]] == [0, 0, 0]
    assert process.result["reason"]["code"] == "too_few_runs"
    assert "range" in process.stdout
    assert "3 runs: a 99 % interval over runs needs 8" in process.stdout


@pytest.mark.slow
def test_several_scenarios_take_turns(lab, gpulab):
    lab.write("other.py", SCENARIO)
    process = gpulab("--run", "mine.py", "other.py", "--repeat", "2", "--output", "runs", *QUIET)
    assert [report["scenario"] for report in process.result["runs"]] == ["mine", "other"] * 2
    assert [entry["scenario"] for entry in process.result["over_runs"]] == ["mine", "other"]


def test_later_runs_measure_times_alone(lab, gpulab, monkeypatch):
    asked = []
    start = run.start

    def recording(request, path):
        asked.append((request.profile is not None, request.job.ceilings.value))
        return start(request, path)

    monkeypatch.setattr(run, "start", recording)
    options = ("--time", "1", "--telemetry", "off", "--device", "cpu")
    gpulab("--run", "mine.py", "--repeat", "2", *options)
    assert asked == [(True, "needed"), (False, "none")]
    asked.clear()
    gpulab("--run", "mine.py", "--repeat", "2", "--profile", "on", *options)
    assert asked == [(True, "needed"), (True, "needed")]


def test_a_run_that_cannot_be_started_takes_nothing_from_the_others(gpulab, monkeypatch):
    start, started = run.start, []

    def failing(request, path):
        started.append(path)
        if len(started) == 2:
            raise UsageError("no run file can be made: No space left on device")
        return start(request, path)

    monkeypatch.setattr(run, "start", failing)
    process = gpulab("--run", "mine.py", "--repeat", "3", *QUIET)
    assert process.code == 3
    assert [report["outcome"] for report in process.result["runs"]] == [
        "measured",
        "failed",
        "measured",
    ]
    assert process.result["over_runs"][0]["runs"] == 2
    assert "No space left on device" in process.stderr
