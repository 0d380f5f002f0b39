"""What a step consists of: one that is built and taken with every part timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from threading import get_ident
from time import perf_counter

import msgspec

from gpulab.core.jobs import Delay, PartKind, StepPart
from gpulab.engine.build.build import Builder
from gpulab.engine.build.lab import WorkerLab
from gpulab.engine.build.load import load
from gpulab.engine.processes.channel import WorkerPosition
from gpulab.engine.processes.device import open_device, waiter
from gpulab.features.trials.delayed import PASSES, RAN, WALL, Part
from gpulab.features.trials.hooks import Hooks, OnDevice, hooked
from gpulab.features.trials.parts import MAIN, PROCESSES, THREAD, PartsRequest, PartsSeen

_WARM_STEPS = 3
_FEWEST_STEPS, _MOST_STEPS = 3, 200
_TIMED_S = 1.0
_COMPILED = "it is compiled: a delay within would compile it again"
_WITHIN = (PartKind.FORWARD, PartKind.BACKWARD)


def look(request: bytes) -> PartsSeen:
    """In a process of its own: what a `PartsRequest` asks."""
    return parts_of(msgspec.json.decode(request, type=PartsRequest))


def parts_of(request: PartsRequest) -> PartsSeen:
    """Build one variant, and take steps of it with every part timed."""
    job = request.job
    device, info = open_device(job.device, job.threads)
    scenario = load(job.subject)
    variant = scenario.variants[request.variant]
    wait = waiter(device)
    lab = WorkerLab(device, info, WorkerPosition())
    builder = Builder(lab, dict(job.subject.params), job.seed or 0, wait)
    asked = [Delay(kind=PartKind.OPERATION, name=name) for name in request.operations]
    hooks = Hooks(device, asked, recording=True)
    function = hooked(variant.function, lambda _: hooks)
    built = builder.build(replace(variant, function=function))
    builder.first_step(built)
    with built.context():
        for _ in range(_WARM_STEPS):
            built.work.step()
        builder.wait()
        hooks.clear()
        steps = 0
        started = perf_counter()
        while steps < _FEWEST_STEPS or (
            perf_counter() - started < _TIMED_S and steps < _MOST_STEPS
        ):
            built.work.step()
            steps += 1
        builder.wait()
        step_s = (perf_counter() - started) / steps
    return PartsSeen(step_s=step_s, parts=list(_parts(hooks, steps, on_device=bool(wait))))


def _parts(hooks: Hooks, steps: int, *, on_device: bool) -> Iterator[StepPart]:
    metrics = getattr(sys.modules.get("torch._dynamo.utils"), "_compilation_metrics", ())
    for (kind, name), part in hooks.parts.items():
        passes, wall_s = part.sum(PASSES), part.sum(WALL)
        if not passes:
            continue
        device_s = part.device_s if isinstance(part, OnDevice) else 0.0
        yield StepPart(
            kind=kind,
            name=name,
            passes=passes / steps,
            seconds=(device_s or wall_s) / steps,
            running=None if on_device else min(1.0, part.sum(RAN) / max(wall_s, 1e-9)),
            lane=_lane(part),
            why_not=_COMPILED if metrics and kind in _WITHIN else "",
        )


def _lane(part: Part) -> str:
    if part.sum(PASSES, first=1):
        return PROCESSES
    return MAIN if part.threads <= {get_ident()} else THREAD
