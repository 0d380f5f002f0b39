"""The steps process runs a variant's steps for a profiler of another program, on a CPU as well."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from gpulab.catalog.catalog import read_file
from gpulab.core.counted_steps import COMMAND, StepsJob
from gpulab.options import Options
from gpulab.session.requests import request_for
from gpulab.session.worker_process import usual_environment

SCENARIO = '''
"""Steps: what they print, and how often they run."""

from pathlib import Path

import torch

from gpulab import Scenario, Work

scenario = Scenario(topic="tests", params={"size": 64})


@scenario.variant
def first(lab, size):
    """The baseline."""
    return Work(_step("first", torch.ones(size)))


@scenario.variant
def broken(lab, size):
    """Fails where it is built."""
    raise ValueError("no such kernel")


@scenario.variant
def last(lab, size):
    """Prints."""
    input_was = _input()
    return Work(_step("last", torch.ones(size), printed=f"printed {input_was!r}"))


def _input():
    import sys

    return sys.stdin.readline()


def _step(name, data, printed=""):
    def step():
        with Path(__file__).with_suffix(f".{name}").open("a") as file:
            file.write("x")
        if printed:
            print(printed)
        return data + 1

    return step
'''
COUNTED = 5


@pytest.fixture
def steps(tmp_path):
    """Start the process with a job of the scenario's; what the job says can be changed."""
    file = tmp_path / "steps.py"
    file.write_text(SCENARIO)
    started = []

    def start(**changes):
        job = request_for(read_file(file), Options(device="cpu", smoke=True)).job
        asked = StepsJob(**{"job": job, "variants": ["first"], "steps": COUNTED, **changes})
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=usual_environment(1),
            cwd=tmp_path,
        )
        started.append(process)
        process.stdin.write(msgspec.json.encode(asked) + b"\n")
        process.stdin.flush()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def states(process):
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 0, errors.decode()
    return [json.loads(line) for line in output.splitlines()], errors.decode()


def test_each_variant_has_its_steps_and_one_that_fails_ends_no_other(steps):
    found, printed = states(steps(variants=["first", "broken", "last"]))
    assert [(each["variant"], each["state"]) for each in found] == [
        ("first", "ready"),
        ("first", "done"),
        ("broken", "failed"),
        ("last", "ready"),
        ("last", "done"),
    ]
    assert "no such kernel" in found[2]["message"]
    done = found[1]
    assert done["steps"] == COUNTED
    assert 0 < done["begin_ns"] < done["end_ns"]
    # what the scenario prints is no answer, and it cannot read what is meant for the process
    assert "printed ''" in printed


def test_steps_wait_for_their_line_and_fail_without_one(steps, tmp_path):
    process = steps(variants=["first", "last"], wait=True)
    assert json.loads(process.stdout.readline())["state"] == "ready"
    warm = Path(tmp_path / "steps.first").stat().st_size
    assert warm > 1
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["state"] == "done"
    assert Path(tmp_path / "steps.first").stat().st_size == warm + COUNTED


def test_rounds_have_their_own_numbers_of_steps_until_none_is_wanted(steps, tmp_path):
    process = steps(wait=True, rounds=9)
    process.stdin.write(b"2\n\n7\n0\n")
    process.stdin.flush()
    found, _ = states(process)
    assert [each.get("steps") for each in found] == [None, 2, COUNTED, 7]
    assert all(one["end_ns"] <= later["begin_ns"] for one, later in pairwise(found[1:]))


@pytest.mark.slow
def test_steps_that_nobody_begins_do_not_run(steps):
    process = steps(wait=True)
    process.stdin.close()
    process.stdin = None
    found, _ = states(process)
    assert [each["state"] for each in found] == ["ready", "failed"]


@pytest.mark.slow
def test_a_device_that_is_not_there_fails_every_variant(steps, tmp_path):
    job = request_for(read_file(tmp_path / "steps.py"), Options(device="cpu", smoke=True)).job
    gone = msgspec.structs.replace(job, device="cuda:77")
    found, _ = states(steps(job=gone, variants=["first", "last"]))
    assert [each["state"] for each in found] == ["failed", "failed"]
    assert "cuda:77" in found[0]["message"]
