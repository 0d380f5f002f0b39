"""Earlier runs: which count, and what a new one is told of them."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.report.build import build_report, fold_all
from gpulab.report.past import PastComparison, PastRun, past_run
from gpulab.session.history import History, keep
from gpulab.session.store import Store

SHA = "ab" * 32
DEVICE = Device(kind="cuda", name="NVIDIA H200", uuid="GPU-1", threads=1)
VERSIONS = {
    "torch": "2.13.0",
    "driver": "580.1",
    "gpulab": "0.4.1",
    "python": "3.12.4",
    "platform": "Linux",
}
VARIANTS = (VariantInfo(name="loop"), VariantInfo(name="bmm", against="loop"))
READY = e.WorkerReady(pid=1, device=DEVICE, environment=VERSIONS)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("GPULAB_HOST", "here")
    monkeypatch.chdir(tmp_path)


def request(**changes):
    subject = ScenarioFile(
        scenario="x", path="x.py", source_sha256=SHA, variants=VARIANTS, params={"n": 64}
    )
    return RunRequest(job=Measure(subject=subject, **changes))


def past(number, speedup=1.5, **changes):
    run_file = Path(f"{number}.jsonl").absolute()
    run_file.touch()
    run = PastRun(
        at=f"2026-11-20T00:{number // 60:02d}:{number % 60:02d}.{number:06d}+00:00",
        host="here",
        run_file=str(run_file),
        scenario="x",
        path="x.py",
        source_sha256=SHA,
        params={"n": 64},
        device=DEVICE,
        environment=VERSIONS,
        outcome=Conclusion.MEASURED,
        exit_code=ExitCode.MEASURED,
        comparisons=(
            PastComparison(variant="bmm", against="loop", verdict="faster", measured=speedup),
        ),
    )
    return replace(run, **changes)


def every():
    """All runs, the oldest first."""
    with Store() as store:
        return store.runs()[::-1]


def told(*runs, events=(READY,), job=None):
    """What a run that sees these events is told of the earlier ones."""
    with Store() as store:
        for run in runs:
            store.add_run(run)
    history = History(job or request())
    history.read()
    return [earlier for event in events if (earlier := history.on_event(event)) is not None]


def speedups(*runs, **more):
    return [past.speedups for earlier in told(*runs, **more) for past in earlier.comparisons]


def test_a_run_is_told_of_earlier_ones_once_it_has_its_device():
    (earlier,) = told(past(1, 1.5), past(2, 1.6), events=(e.Stopped(reason="width"), READY))
    (comparison,) = earlier.comparisons
    assert (comparison.variant, comparison.against, comparison.speedups) == (
        "bmm",
        "loop",
        [1.5, 1.6],
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"source_sha256": "cd" * 32},
        {"params": {"n": 65}},
        {"host": "elsewhere"},
        {"device": replace(DEVICE, uuid="GPU-2")},
        {"device": replace(DEVICE, threads=2)},
        {"environment": {**VERSIONS, "torch": "2.13.1"}},
        {"environment": {**VERSIONS, "driver": "581"}},
        {"environment": {**VERSIONS, "gpulab": "0.5.0"}},
        {"smoke": True},
        {"quick": True},
        {"outcome": Conclusion.INTERRUPTED},
        {"outcome": Conclusion.INVALID},
        {"outcome": Conclusion.FAILED},
        {"comparisons": (PastComparison(variant="bmm", against="loop", verdict="wrong"),)},
    ],
)
def test_only_what_measured_the_same_counts(changes):
    assert speedups(past(1, **changes), past(2, 1.7)) == [[1.7]]


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": {**VERSIONS, "gpulab": "0.4.9", "python": "3.12.9", "platform": "another"}},
        {"outcome": Conclusion.SLOWER},
        {"outcome": Conclusion.INCONCLUSIVE},
        {"path": "moved.py", "scenario": "moved"},
    ],
)
def test_what_does_not_change_the_result_does_not_matter(changes):
    assert speedups(past(1, 1.6, **changes), past(2, 1.7)) == [[1.6, 1.7]]


def test_points_of_a_sweep_beside_each_other_are_no_run_of_the_scenario():
    point = VariantInfo(name="bmm n=64", function="bmm", params={"n": 64})
    job = request().job
    swept = RunRequest(job=replace(job, subject=replace(job.subject, variants=(point,))))
    assert told(past(1), job=swept) == []
    state = recorded_state(swept)
    assert past_run(state, build_report(state)) is None


def recorded_events(asked=None, outcome="done"):
    started = e.RunStarted(
        t=1.0, request=asked or request(), at="2026-11-21T00:00:00+00:00", host="here"
    )
    return [
        started,
        replace(READY, t=2.0),
        e.Stopped(t=3.0, reason="time"),
        e.RunEnded(t=4.0, outcome=outcome),
    ]


def recorded_state(asked=None):
    return fold_all(recorded_events(asked))


def test_a_run_that_ended_is_kept_with_all_that_a_list_of_runs_shows():
    state = recorded_state()
    Path("run.jsonl").touch()
    keep(state, build_report(state, "run.jsonl"))
    (kept,) = every()
    assert (kept.scenario, kept.at, kept.host, kept.run_file) == (
        "x",
        "2026-11-21T00:00:00+00:00",
        "here",
        str(Path("run.jsonl").absolute()),
    )
    assert (kept.params, kept.device, kept.outcome, kept.elapsed_s) == (
        {"n": 64},
        DEVICE,
        "measured",
        3.0,
    )
    assert kept.key == past(1).key


def test_the_newest_runs_are_enough():
    (values,) = speedups(*(past(number, 1 + number) for number in range(70)))
    assert values == [1.0 + number for number in range(20, 70)]
