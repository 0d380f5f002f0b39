"""Runs made by hand, of a and b: events whose report is known. A step of a takes 1 ms, and a block
8 steps.
"""

import random

from gpulab.core import events as e
from gpulab.core.jobs import (
    FunctionFile,
    Measure,
    RunRequest,
    ScenarioFile,
    TimeFunctions,
    VariantInfo,
)
from gpulab.core.limits import TELEMETRY_OFF
from gpulab.core.machine import Device
from gpulab.core.statuses import Outcome, Stage, StopReason
from gpulab.report.build import build_report, fold_all

NAMES = ("a", "control", "b")
INFOS = (VariantInfo(name="a"), VariantInfo(name="b", against="a"))
CPU = Device(kind="cpu", name="c")
SLOT_S = 0.01
"""From the beginning of a block to that of the next."""
STEPS = 8
ON_CPU = 0.95
STARTED_T = 0.05
END = (e.Stopped(reason=StopReason.WIDTH, t=100.0), e.RunEnded(outcome=Outcome.DONE, t=101.0))


def request(*infos, telemetry=TELEMETRY_OFF, subject=None, **job):
    """A run of a scenario; `subject` has fields of its file, `job` those of the job."""
    file = {
        "scenario": "s",
        "path": "s.py",
        "source_sha256": "0",
        "variants": infos or INFOS,
        **(subject or {}),
    }
    return RunRequest(job=Measure(subject=ScenarioFile(**file), **job), telemetry=telemetry)


def functions_request(*names):
    infos = tuple(VariantInfo(name=name) for name in names)
    file = FunctionFile(scenario=f"s:{names[0]}", path="s.py", source_sha256="0", variants=infos)
    return RunRequest(job=TimeFunctions(subject=file), telemetry=TELEMETRY_OFF)


def opening(run_request=None, *, device=CPU, processes=0, epochs=20, **built):
    """A run up to its first round. `processes` share the epochs evenly; `built` has fields of every
    build.
    """
    run_request = run_request or request()
    build = {"build_s": 0.1, "first_step_s": 0.1, "items": 2.0, **built}
    return [
        e.RunStarted(request=run_request, at="", host="h", t=STARTED_T),
        e.WorkerReady(pid=1, device=device, environment={}, t=0.1),
        *(e.Built(variant=info.name, t=0.2, **build) for info in run_request.job.subject.variants),
        e.Planned(rounds=5, epochs=20, t=0.3),
        e.StageStarted(stage=Stage.MEASURE, t=0.4),
        *(
            e.ProcessStarted(process=number, seed=number, epoch=number * epochs // processes, t=0.4)
            for number in range(processes)
        ),
    ]


def rows(ratios, *, epochs=20, rounds=5, names=NAMES, spread=0.001, seed=0):
    """(epoch, round, index of the name, seconds of a step). `spread` is relative, of every block or
    by name.
    """
    draw = random.Random(seed)
    spreads = {
        name: spread.get(name, 0.0) if isinstance(spread, dict) else spread for name in names
    }
    return [
        (
            epoch,
            number,
            index,
            1e-3 * ratios.get(name, 1.0) * draw.uniform(1 - spreads[name], 1 + spreads[name]),
        )
        for epoch in range(epochs)
        for number in range(rounds)
        for index, name in enumerate(names)
    ]


def batches(blocks, size, *, names=NAMES, complete=None, start=1.0, faults=1):
    """Blocks as events of so many, each in a slot of its own from `start` on. `complete` is what
    the last one says.
    """
    for first in range(0, len(blocks), size):
        part = blocks[first : first + size]
        count, ends = (
            len(part),
            [start + SLOT_S * (first + number + 1) for number in range(len(part))],
        )
        last = first + size >= len(blocks) and complete is not None
        yield e.Samples(
            names=names,
            complete=complete if last else part[-1][0],
            epoch=[row[0] for row in part],
            round=[row[1] for row in part],
            variant=[row[2] for row in part],
            times_s=[row[3] for row in part],
            cpu_s=[row[3] * ON_CPU for row in part],
            faults=[faults] * count,
            switches=[0] * count,
            ended=ends,
            steps=[STEPS] * count,
            t=ends[-1],
        )


def samples(ratios, size=10_000, *, names=NAMES, faults=1, start=1.0, **options):
    """All blocks of a run: `ratios` are of the time of a."""
    return list(
        batches(rows(ratios, names=names, **options), size, names=names, faults=faults, start=start)
    )


def run_of(ratios, *, run_request=None, later=(), end=END, opened=None, **options):
    """The events of a whole run; `later` happens after the rounds."""
    return [*(opened or opening(run_request)), *samples(ratios, **options), *later, *end]


def report_of(events, **options):
    return build_report(fold_all(events), **options)
