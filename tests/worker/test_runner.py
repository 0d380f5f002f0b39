"""A whole job in this process: what a worker makes of a baseline that is no baseline, and of builds that take long."""

import gc
import sys
from hashlib import sha256

import pytest
import torch

from gpulab.protocol import events as e
from gpulab.protocol.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.protocol.statuses import Outcome, Stage
from gpulab.scenario import CONTROL
from gpulab.worker.process.position import WorkerPosition
from gpulab.worker.process.reporting import Reporter
from gpulab.worker.process.sample_buffer import SampleBuffer
from gpulab.worker.runner import Runner

HEAD = """
import time
import torch
from gpulab import Scenario, Work
scenario = Scenario("runner")
builds = 0

def work(times):
    data = torch.rand(1000)
    def step():
        for _ in range(times):
            out = data * 2
        return out
    return Work(step, inputs=data)
"""
VARIANT = """
@scenario.variant
def {name}(lab):
    {body}
"""


class RecordingChannel:
    def __init__(self):
        self.events = []

    def emit(self, *events):
        self.events += events

    def pump(self):
        pass


@pytest.fixture
def job_events(tmp_path, monkeypatch):
    """Runs a scenario of these bodies, by variant, and returns its events; what a run changes here is undone."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    threads = torch.get_num_threads()

    def run(bodies, **options):
        path = tmp_path / "scenario.py"
        path.write_text(HEAD + "".join(VARIANT.format(name=name, body=body) for name, body in bodies.items()))
        baseline = next(iter(bodies))
        infos = tuple(VariantInfo(name=name, against=None if name == baseline else baseline) for name in bodies)
        digest = sha256(path.read_bytes()).hexdigest()
        subject = ScenarioFile(
            scenario="s", path=str(path), source_sha256=digest, source=path.read_text(), variants=infos
        )
        job = Measure(subject=subject, solo_runs=False, **options)
        channel, names = RecordingChannel(), (*bodies, CONTROL)
        Runner(job, Reporter(channel, job, WorkerPosition(names)), SampleBuffer(names)).serve()
        started = e.RunStarted(request=RunRequest(job=job, telemetry="off"), at="", host="")
        return [started, *channel.events, e.RunEnded(outcome=Outcome.DONE)]

    yield run
    torch.set_num_threads(threads)
    gc.unfreeze()


def of_kind(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_a_baseline_that_steps_aside_leaves_nothing_to_measure(job_events):
    events = job_events({"first": "lab.skip('needs [more] bits')", "second": "return work(1)"}, time_s=0.1)
    (skipped,) = of_kind(events, e.VariantSkipped)
    assert (skipped.variant, skipped.reason.code) == ("first", "skipped_by_variant")
    assert skipped.reason.values == {"reason": "needs [more] bits"}
    assert {event.variant for event in of_kind(events, e.StageStarted)} == {None, "first"}
    assert of_kind(events, e.Samples) == []


def test_a_baseline_that_returns_nothing_leaves_every_variant_unchecked(job_events):
    silent = "data = torch.rand(1000); return Work(lambda: [data * 2, None][1], inputs=data)"
    events = job_events({"silent": silent, "second": "return work(3)"}, time_s=0.1)
    (unchecked,) = of_kind(events, e.Unchecked)
    assert (unchecked.variant, unchecked.reason.code) == ("silent", "returns_nothing")
    assert of_kind(events, e.Checked) == []
    assert {name for event in of_kind(events, e.Samples) for name in event.names} == {"silent", "second", CONTROL}


def test_expensive_builds_are_few_and_take_all_rounds(job_events):
    slow = "globals().update(builds=builds + 1); builds > 1 and time.sleep(1.02); return work(9)"
    events = job_events({"first": "return work(1)", "slow": slow}, time_s=3.0)
    (planned,) = of_kind(events, e.Planned)
    assert (planned.expensive, planned.epochs, planned.floor) == (True, 2, 0.03)
    batches = of_kind(events, e.Samples)
    assert batches[-1].complete == 2
    rounds = {row for batch in batches for row in zip(batch.epoch, batch.round, strict=True)}
    assert len(rounds) >= 20
    assert [event.stage for event in of_kind(events, e.StageStarted)][-2:] == [Stage.RE_CHECK] * 2
