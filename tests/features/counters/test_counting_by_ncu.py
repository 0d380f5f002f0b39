"""--ncu: what becomes of a run where ncu counts, fails, dies or hangs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gpulab.cli import main
from gpulab.core.wire import decode, split
from gpulab.session.worker_process import usual_environment

HERE = Path(__file__).parent
SCENARIO = '''
"""Counted: a scenario of two."""

import os

import torch

from gpulab import Scenario, Work

scenario = Scenario(topic="tests", params={"size": 64})


@scenario.variant
def first(lab, size):
    """The baseline."""
    data = torch.ones(size)
    return Work(lambda: data + 1)


@scenario.variant
def second(lab, size):
    """The other."""
    data = torch.ones(size)
    return Work(lambda: data + 1)


@scenario.variant
def raises(lab, size):
    """Fails in ncu alone."""
    raise ValueError("no such kernel")


@scenario.variant
def crashes(lab, size):
    """Ends the process."""
    os._exit(7)
'''


CALLED_A_GPU = """
import sys

if "gpulab.engine" in " ".join(sys.orig_argv):
    from msgspec.structs import replace

    from gpulab.features.counters import worker

    count = worker.count
    worker.count = lambda job, *rest: count(replace(job, device="cuda:0"), *rest)
"""
"""A sitecustomize for a worker on the CPU, which then has its kernels counted."""


@pytest.fixture
def stand_in(tmp_path):
    """A folder for PATH with an ncu."""
    ncu = tmp_path / "ncu"
    text = (HERE / "ncu_stand_in.py").read_text()
    ncu.write_text(f"#!{sys.executable}\n{text}")
    ncu.chmod(0o755)
    shutil.copy(HERE / "exports" / "lessons.raw.csv", tmp_path / "printed.csv")
    return tmp_path


@pytest.fixture
def count(stand_in, tmp_path):
    """Count a scenario where ncu ends so; findings and what was counted, by variant."""
    file = tmp_path / "50%_counted.py"
    file.write_text(SCENARIO)

    def run(ending, asked="", limit_s=60.0):
        (tmp_path / "ending").write_text(ending)
        environment = usual_environment(1)
        environment["PATH"] = str(tmp_path)
        command = [sys.executable, HERE / "counting.py", file, asked, str(limit_s)]
        done = subprocess.run(
            command, capture_output=True, env=environment, timeout=100, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        lines = [split(line) for line in done.stdout.splitlines() if line]
        return [decode(line[1]) for line in lines if line]

    return run


def findings(events):
    kind = type(events[-1])
    return [event.finding for event in events if isinstance(event, kind)]


def counted(events):
    return {event.variant: event for event in events if hasattr(event, "together")}


def nothing_runs(folder):
    pids = [int(pid) for pid in (folder / "pids").read_text().split()]
    return not any(psutil.pid_exists(pid) for pid in pids)


def test_the_baseline_and_the_variant_that_is_named_are_counted(count, tmp_path):
    events = count("counted", asked="second")
    found = counted(events)
    assert set(found) == {"first", "second"}
    kernels = found["first"].kernels
    assert kernels[0].name == "reduce_atomic(const float *, float *, int)"  # the longest
    assert len(kernels) == 5
    total = sum(kernel.metrics["dram_bytes"] for kernel in kernels)
    assert found["first"].together.metrics["dram_bytes"] == pytest.approx(total)
    report = tmp_path / "50%_counted.ncu-rep"
    assert found["first"].report == found["second"].report == str(report)
    assert report.exists()
    (kept,) = findings(events)
    assert (kept.code, kept.variant) == ("counters_kept", None)
    stages = [event for event in events if hasattr(event, "detail")]
    assert {stage.detail for stage in stages} == {"counting kernels of 2 variants with ncu"}
    assert [stage.variant for stage in stages] == ["first", "first", "second"]  # the first starts


def test_a_variant_that_fails_and_one_that_ends_the_process_take_nothing_from_others(count):
    events = count("counted")
    assert set(counted(events)) == {"first", "second"}
    failed, ended, kept = findings(events)
    assert (failed.variant, ended.variant, kept.variant) == ("raises", "crashes", None)
    assert "its step failed: " in failed.values["message"]
    assert "no such kernel" in failed.values["message"]
    assert ended.values["message"] == "ncu: it ended early"


def test_a_step_without_kernels_is_told_from_one_that_fails(count):
    events = count("==WARNING== No kernels were profiled.", asked="raises")
    assert not counted(events)
    without, failed = findings(events)
    assert (without.variant, failed.variant) == ("first", "raises")
    assert "no kernel" in without.values["message"]
    assert "its step failed" in failed.values["message"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("ERR_NVGPUCTRPERM - The user does not have permission", "not_allowed"),
        ("Failed to load the profiler library", "not_loaded"),
        ("Profiling failed because a driver resource was unavailable.", "in_use"),
    ],
)
def test_why_nothing_was_counted_is_said_once(count, error, reason):
    (found,) = findings(count(f"==ERROR== {error}"))
    assert found.code == "nothing_counted"
    assert found.values == {"reason": reason}


def test_another_error_of_ncu_is_said_of_each(count):
    found = findings(count("==ERROR== Something else", asked="second"))
    assert [finding.variant for finding in found] == ["first", "second"]
    assert {finding.values["message"] for finding in found} == {"ncu: Something else"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "said"),
    [("killed", "it ended with code -9"), ("hangs", "it did not end within 3 s")],
)
def test_an_ncu_that_dies_or_hangs_leaves_nothing_behind(count, tmp_path, ending, said):
    (found,) = findings(count(ending, asked="first", limit_s=3.0))
    assert found.values["message"] == f"ncu: {said}"
    assert nothing_runs(tmp_path)


def test_without_ncu_nothing_is_counted(count, tmp_path):
    (tmp_path / "ncu").unlink()
    (finding,) = findings(count("counted"))
    assert finding.values == {"reason": "ncu_missing"}


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--ncu", "there is no ncu on PATH; install Nsight Compute"),
        ("--counters", "python -m pip install -U cupti-python"),
    ],
)
def test_a_tool_that_is_missing_is_an_error_before_a_run(monkeypatch, capsys, tmp_path, flag, said):
    monkeypatch.setattr("gpulab.session.requests.device_of", lambda _: "cuda:0")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("GPULAB_COUNTERS_PYTHON", str(tmp_path / "python"))
    target = tmp_path / "run.jsonl"
    assert main(["--run", "batched_matmul", flag, "--output", str(target)]) == 2
    assert said in capsys.readouterr().err
    assert not target.exists()


@pytest.mark.slow
def test_a_run_on_a_cpu_says_that_it_has_no_counters_and_is_measured(tmp_path):
    result = tmp_path / "run.json"
    command = [sys.executable, "-m", "gpulab", "--run", "batched_matmul", "--smoke"]
    command += ["--device", "cpu", "--ncu", "--json", str(result)]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    (run,) = json.loads(result.read_bytes())["runs"]
    assert "on_cpu" in [finding["values"].get("reason") for finding in run["explanations"]]
    assert run["outcome"] == "measured"


def test_a_whole_run_has_its_counters_in_its_result_and_its_replay(stand_in, tmp_path):
    (stand_in / "ending").write_text("counted")
    (tmp_path / "sitecustomize.py").write_text(CALLED_A_GPU)
    environment = {
        **os.environ,
        "PATH": f"{stand_in}:{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
    }

    def gpulab(*arguments):
        command = [sys.executable, "-m", "gpulab", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run_file, result = tmp_path / "run.jsonl", tmp_path / "run.json"
    run = ["--run", "batched_matmul", "--smoke", "--device", "cpu", "--ncu", "bmm"]
    printed = gpulab(*run, "--output", run_file, "--json", result)
    assert "bmm against loop: no counter differs by more than 10%" in printed
    assert printed.count("run.ncu-rep") == 1
    assert "stalls" not in printed
    (found,) = json.loads(result.read_bytes())["runs"]
    counters = {each["name"]: each["counters"] for each in found["variants"]}
    assert counters["graphed"] is None
    assert len(counters["bmm"]["kernels"]) == 5
    assert Path(counters["bmm"]["report"]).name == "run.ncu-rep"
    assert "bmm against loop: no counter differs" in gpulab("--replay", run_file, "--print")
