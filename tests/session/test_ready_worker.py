"""A worker that has imported torch before there is a job: an app keeps one, and the next run takes
it.
"""

import sys
from time import monotonic, sleep

import psutil
import pytest
from msgspec.structs import replace
from session_workers import request

from gpulab.catalog.catalog import read_file
from gpulab.core.events import Planned, RunEnded
from gpulab.options import Options
from gpulab.session.launch import start_entry
from gpulab.session.worker_process import READY

SCENARIO = '''
"""Doubles."""
import torch
from gpulab import Scenario, Work
scenario = Scenario("ready")

@scenario.variant
def a(lab):
    data = torch.rand(1000)
    return Work(lambda: data * 2, inputs=data)

@scenario.variant
def b(lab):
    data = torch.rand(1000)
    return Work(lambda: data + data, inputs=data)
'''
SMOKE = Options(device="cpu", smoke=True, telemetry="off", profile="off")


def _has_torch(process):
    forked = process.children(recursive=True)
    return any("libtorch" in file.path for child in forked for file in child.memory_maps())


@pytest.fixture
def worker(lab, monkeypatch):
    """The process of one that is ready."""
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    READY.prepare(threads=1)
    process = psutil.Process(READY._started[0]._process.pid)
    deadline = monotonic() + 60
    while not _has_torch(process):
        assert monotonic() < deadline, "torch is not imported"
        sleep(0.05)
    yield process
    READY.close()
    assert not process.is_running()


def test_a_run_takes_the_worker_that_is_ready(lab, worker):
    source = start_entry(read_file(lab.write("ready.py", SCENARIO)), SMOKE)
    source.wait()
    events = source.take()
    assert not worker.is_running()
    assert READY._started is None
    assert isinstance(events[-1], RunEnded)
    assert events[-1].outcome == "done"
    assert any(isinstance(event, Planned) for event in events)


@pytest.mark.parametrize(("seed", "taken"), [(None, True), (3, False)])
def test_a_run_with_a_seed_has_one_of_its_own(monkeypatch, seed, taken):
    waits = (sys.executable, "-S", "-c", "import time; time.sleep(600)")
    monkeypatch.setattr("gpulab.session.worker_process.WORKER", waits)
    job = replace(request().job, seed=seed)
    READY.prepare(job.threads)
    process = psutil.Process(READY._started[0]._process.pid)
    started = READY.take(job)
    assert (started is not None) == process.is_running() == taken
    if started:
        started.close()


def test_a_run_takes_none_of_which_a_process_was_killed(worker):
    """As the system does where memory ends: here the process that forks, which the worker
    notices.
    """
    worker.children(recursive=True)[-1].kill()
    worker.wait(10)
    assert READY.take(request().job) is None
