"""Cached ceilings with odd values and bytes in them: measured anew, never in the way of a run."""

import os

import msgspec

from fuzz.mutations import mutated_bytes, mutated_json
from fuzz.shown import show
from gpulab.core import events as e
from gpulab.core.finding import finding
from gpulab.core.jobs import Measure, RunRequest, ScenarioFile, VariantInfo
from gpulab.core.machine import Device
from gpulab.core.payloads import Ceiling
from gpulab.core.statuses import CeilingChoice
from gpulab.session.ceilings import CacheEntry, Key, load
from gpulab.session.run import Run

DEVICE = Device(
    kind="cuda", name="NVIDIA H200", uuid="GPU-1", capability="9.0", sms=132, l2_bytes=50 << 20
)
KEY = Key(
    gpulab="1",
    device="GPU-1",
    driver="580.1",
    torch="2.13",
    cupy=None,
    threads=1,
    power_limit=700.0,
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


def case(random):
    """The bytes of one."""
    data = msgspec.json.encode(CacheEntry(key=KEY, device=DEVICE, measured=MEASURED))
    return (mutated_bytes if random.randrange(3) == 0 else mutated_json)(random, data)


def check(data, folder):
    """Look the key up as a run does, and show the run that is given what comes of it."""
    os.environ["XDG_CACHE_HOME"] = str(folder)
    KEY.path.parent.mkdir(parents=True, exist_ok=True)
    KEY.path.write_bytes(data)
    entry, unreadable = load(KEY)
    assert entry is None or not unreadable
    if entry is None:
        return
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
    }
    samples = e.Samples(
        names=("a", "control"), complete=9, epoch=[*range(9)], times_s=[1e-3] * 9, **columns
    )
    events = [
        e.RunStarted(request=REQUEST, at="", host=""),
        e.WorkerReady(pid=1, device=DEVICE, environment={}),
        *(entry.measured, built, calibrated, samples, solo),
        e.RunEnded(outcome="done"),
    ]
    run = Run(_Events(events))
    run.poll()
    show(run)
    assert not run.report.failures, run.report.failures[0].cause.values
