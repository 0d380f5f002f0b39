"""A store with odd values in its rows, or odd bytes: never in the way of a run or of a list."""

import os
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from functools import cache

import msgspec
from found import finding

from fuzz.mutations import mutated_bytes, mutated_json
from fuzz.shown import show
from gpulab.core import events as e
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.payloads import Ceiling, Choice, Tried, Tuning
from gpulab.core.statuses import CeilingChoice
from gpulab.features.history import view
from gpulab.features.history.report import PastComparison, PastRun
from gpulab.features.predictions.report import Answered, Prediction, newest_answers, record
from gpulab.features.predictions.view import judged
from gpulab.session.run import Run
from gpulab.session.run_files import state_folder
from gpulab.session.store import NAME, Store

DEVICE = Device(
    kind="cuda", name="NVIDIA H200", uuid="GPU-1", capability="9.0", sms=132, l2_bytes=50 << 20
)
MEASURED = e.CeilingsMeasured(
    at="2026-11-20T00:00:00+00:00",
    ceilings=tuple(
        Ceiling(
            roof=roof,
            kind=kind,
            unit=unit,
            best=best,
            median=0.9 * best,
            samples=9,
            method=finding("triad"),
        )
        for roof, kind, unit, best in (
            ("device memory", "triad", "B/s", 3e12),
            ("matrix", "bf16", "FLOP/s", 6e14),
            ("vector", "fp32", "FLOP/s", 5e13),
            ("launch", "", "s", 3e-6),
        )
    ),
    cache_bytes=1 << 20,
    complete=True,
)
SUBJECT = ScenarioFile(
    scenario="x", path="x.py", source_sha256="0", variants=(VariantInfo(name="a"),)
)
REQUEST = RunRequest(job=Measure(subject=SUBJECT, ceilings=CeilingChoice.NEEDED))


class _Events:
    """A source with one batch."""

    path, findings = "run.jsonl", ()

    def __init__(self, events):
        self.events = events

    ended = True

    def take(self):
        return self.events

    def now(self):
        return 9.0


PAST = PastRun(
    at="2026-11-20T00:00:00+00:00",
    host="here",
    run_file="/dev/null",
    scenario="x",
    path="x.py",
    source_sha256="0",
    params={"n": 1},
    device=DEVICE,
    environment={"torch": "2.13"},
    outcome="measured",
    exit_code=0,
    comparisons=(
        PastComparison(variant="b", against="a", verdict="faster", speedup=1.5, low=1.4, high=1.6),
    ),
    best="b",
    fastest_s=1e-3,
)
KEPT = {
    "ceilings": MEASURED,
    "choices": Choice(
        key="k",
        tuning=Tuning(
            tried=[
                Tried(config="block=1", time_s=1e-3, blocks=9, ratio=1.0),
                Tried(config="block=2", time_s=2e-3, blocks=9, ratio=2.0, low=1.9, high=2.1),
                Tried(config="block=3", reason="does not compile"),
            ],
            rounds=9,
        ),
    ),
    "predictions": Answered(
        at="", scenario="x", prediction=Prediction((2.0,)), measured=PAST.comparisons[0]
    ),
}


@cache
def whole():
    """The bytes of a store with a row of each kind."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        with Store() as store:
            store.add_run(PAST)
            for kind, value in KEPT.items():
                store.keep(kind, "", "", value)
        return (state_folder() / NAME).read_bytes()


def case(random):
    """The bytes of a store, or the values that are to be put into it."""
    if random.randrange(3) == 0:
        return mutated_bytes(random, whole())
    values = {"runs": PAST, **KEPT}
    rows = {
        kind: mutated_json(random, msgspec.json.encode(value)) for kind, value in values.items()
    }
    if random.randrange(10) == 0:
        rows[random.choice(list(rows))] = random.choice((None, 1, 0.5, "text", b""))
    return rows


def check(data, folder):
    """Read it as a run and a list of runs do, and show what comes of it."""
    os.environ["XDG_STATE_HOME"] = str(folder)
    path = state_folder() / NAME
    path.parent.mkdir(parents=True, exist_ok=True)
    for old in path.parent.iterdir():
        old.unlink()
    path.write_bytes(data if isinstance(data, bytes) else whole())
    if isinstance(data, dict):
        with closing(sqlite3.connect(path)) as db, db:
            db.execute("UPDATE runs SET run = ?", (data.pop("runs"),))
            for kind, value in data.items():
                db.execute("UPDATE kept SET value = ? WHERE kind = ?", (value, kind))
        db.close()
    with Store() as store:
        known = store.kept("ceilings", "", e.CeilingsMeasured)
        choices = store.kept("choices", "", Choice)
        runs = [run for part in store.runs() for run in part.runs]
        store.set_aside()
    record()
    for answered in newest_answers().values():
        judged(answered)
    now = datetime.now(UTC)
    for run in runs:
        view.line(run, now, 80)
        view.search_text(run)
        view.facts(run)
        view.others_on_one_axis([run], run, width=80, height=8)
    for measured in known or [MEASURED] * len(choices):
        check_run_with(measured, choices)


def check_run_with(known, choices=()):
    """Show the run that is given these ceilings and choices."""
    built = e.Built(
        variant="a",
        build_s=0.0,
        first_step_s=0.0,
        items=1.0,
        bytes=1 << 20,
        flops=1 << 20,
        dtype="bf16",
    )
    calibrated = e.Calibrated(variant="a", steps_per_block=9, step_s=1e-3, empty_block_s=0.0)
    solo = e.SoloRun(variant="a", started=1.0, ended=2.0, steps=1000, time_s=1e-3)
    columns = {
        "round": [0] * 9,
        "variant": [0] * 9,
        "cpu_s": [0.0] * 9,
        "faults": [0] * 9,
        "switches": [0] * 9,
        "ended": [2.0] * 9,
        "steps": [1] * 9,
    }
    samples = e.Samples(
        names=("a", "control"), complete=9, epoch=[*range(9)], times_s=[1e-3] * 9, **columns
    )
    events = [
        e.RunStarted(request=REQUEST, at="", host=""),
        e.WorkerReady(pid=1, device=DEVICE, environment={}),
        *(known, built, calibrated, samples, solo),
        *(e.Tuned(variant="a", choice=choice, cached=True) for choice in choices),
        e.RunEnded(outcome="done"),
    ]
    run = Run(_Events(events))
    run.poll()
    show(run)
    assert not run.report.failures, run.report.failures[0].cause.values
