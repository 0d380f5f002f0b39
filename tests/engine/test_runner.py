"""A whole job in this process: what a worker makes of a baseline that is no baseline, and of builds
that take long.
"""

import sys
from hashlib import sha256

import pytest
import torch
from checker_bench import RecordingChannel

from gpulab.core import events as e
from gpulab.core.jobs import Measure, ProfileOptions, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.statuses import Outcome, StopReason
from gpulab.engine.measure.runner import Process, measure
from gpulab.engine.processes.channel import SampleBuffer, WorkerPosition
from gpulab.engine.processes.layout import seed_of
from gpulab.engine.processes.reporting import Reporter
from gpulab.features.alone import worker as alone
from gpulab.scenario import CONTROL

HEAD = """
import time
import torch
from gpulab import Scenario, Work
scenario = Scenario("runner")
builds = {"first": [], "slow": []}

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


class LastTurn:
    """The turn of the last process of a run."""

    def __init__(self, before):
        self.before = before
        self.result = None

    def begin(self):
        return self.before

    def preload(self, preload):
        pass

    def end(self, result):
        self.result = result
        return StopReason.TIME if result.candidates else StopReason.FAILED


@pytest.fixture
def job_events(tmp_path, monkeypatch):
    """Runs a scenario of these bodies, by variant, and returns its events; what a run changes here
    is undone.
    """
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    threads = torch.get_num_threads()

    def run(bodies, before=None, **options):
        path = tmp_path / "scenario.py"
        path.write_text(
            HEAD + "".join(VARIANT.format(name=name, body=body) for name, body in bodies.items())
        )
        baseline = next(iter(bodies))
        infos = tuple(
            VariantInfo(name=name, against=None if name == baseline else baseline)
            for name in bodies
        )
        digest = sha256(path.read_bytes()).hexdigest()
        subject = ScenarioFile(
            scenario="s",
            path=str(path),
            source_sha256=digest,
            source=path.read_text(),
            variants=infos,
        )
        job = Measure(subject=subject, **{"solo_runs": False, **options})
        channel, names = RecordingChannel(), (*bodies, CONTROL)
        reporter = Reporter(channel, job, WorkerPosition(names))
        turn = LastTurn(before)
        number = 0 if before is None else 1
        process = Process(
            number=number,
            seed=seed_of(job.seed, number),
            fork_server=0,
            buffer=SampleBuffer(names),
            turn=turn,
        )
        measure(job, reporter, process)
        run.result = turn.result
        started = e.RunStarted(request=RunRequest(job=job, telemetry="off"), at="", host="")
        return [started, *channel.events, e.RunEnded(outcome=Outcome.DONE)]

    yield run
    torch.set_num_threads(threads)


def of_kind(events, kind):
    return [event for event in events if isinstance(event, kind)]


def test_a_baseline_that_steps_aside_leaves_nothing_to_measure(job_events):
    events = job_events(
        {"first": "lab.skip('needs [more] bits')", "second": "return work(1)"}, time_s=0.1
    )
    (skipped,) = of_kind(events, e.VariantSkipped)
    assert (skipped.variant, skipped.reason.code) == ("first", "skipped_by_variant")
    assert skipped.reason.values == {"reason": "needs [more] bits"}
    assert {event.variant for event in of_kind(events, e.StageStarted)} == {None, "first"}
    assert of_kind(events, e.Samples) == []


def test_a_later_process_starts_from_the_result_of_the_first(job_events):
    bodies = {"first": "return work(1)", "second": "return work(3)"}
    first = job_events(bodies, time_s=0.3)
    second = job_events(bodies, before=job_events.result, time_s=0.3)
    assert (
        of_kind(second, e.Built)
        == of_kind(second, e.Calibrated)
        == of_kind(second, e.Planned)
        == []
    )
    (started,) = of_kind(second, e.ProcessStarted)
    assert started.epoch == of_kind(first, e.Samples)[-1].complete
    assert started.seed != of_kind(first, e.ProcessStarted)[0].seed
    assert {epoch for batch in of_kind(second, e.Samples) for epoch in batch.epoch} >= {
        started.epoch
    }


def test_where_a_question_wants_the_utilization_variants_run_alone_for_longer(
    job_events, monkeypatch
):
    monkeypatch.setattr(alone, "_SOLO_S", 0.05)
    monkeypatch.setattr(alone, "_AVERAGED_S", 0.2)
    bodies = {"first": "return work(1)", "second": "return work(3)"}
    profile = ProfileOptions(utilization=True)
    options = {"solo_runs": True, "gpu_beside_cpu": True, "profile": profile}
    events = job_events(bodies, time_s=0.3, **options)
    runs = of_kind(events, e.SoloRun)
    assert {run.variant for run in runs} == {"first", "second"}
    assert all(run.ended - run.started >= 0.2 for run in runs)


def test_in_a_later_process_the_baseline_is_built_at_random_places(job_events, tmp_path):
    """What is built first has other memory than what comes after, and would be the baseline in
    every process.
    """
    log = tmp_path / "order"
    writes = (
        f"from pathlib import Path; path = Path({str(log)!r}); before = path.read_text() if "
        "path.exists() else ''"
    )
    bodies = {
        name: f"{writes}; path.write_text(before + '{name[0]}'); return work({times})"
        for name, times in {"first": 1, "second": 3}.items()
    }
    job_events(bodies, time_s=0.1)
    behind = set()
    for _ in range(20):
        log.unlink()
        job_events(bodies, before=job_events.result, time_s=0.1)
        order = log.read_text()
        assert order.startswith("f"), "the others are compared with its output"
        behind.add(len(order.rpartition("s")[2]))
        if len(behind) > 1:
            break
    assert len(behind) > 1, "of the baselines, so many are built after the other variant"


def test_a_later_process_finds_a_wrong_output_of_its_own(job_events):
    right = {"first": "return work(1)", "second": "return work(3)"}
    job_events(right, time_s=0.3)
    wrong = {
        **right,
        "second": "data = torch.rand(1000); return Work(lambda: data * 3, inputs=data)",
    }
    events = job_events(wrong, before=job_events.result, time_s=0.3)
    (checked,) = [event for event in of_kind(events, e.Checked) if not event.ok]
    assert (checked.variant, checked.reason.code) == ("second", "relative_error")
