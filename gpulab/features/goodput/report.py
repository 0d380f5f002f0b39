"""Where the time of a step goes, as a part of the report: from the windows of a variant.

On a GPU the step is that of the rounds. Where kernels took longer in the recording than the step,
or than the device in the rounds, the device was in another state (a power cap): then the step is
that of the profiler's own process. CUPTI, once started, stays attached to a process and makes its
launches longer, so that step is not taken otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, Checked, Event, OtherClock, SoloRun, VariantRefused
from gpulab.core.findings import Finding
from gpulab.core.jobs import Follow, Measure
from gpulab.core.payloads import CATEGORIES, LINKS, USEFUL, WAITING
from gpulab.core.statuses import Cache, Clock
from gpulab.features.goodput import result
from gpulab.features.goodput.analysis import (
    HALF_INSIDE,
    busy_s,
    parts_on_cpu,
    parts_on_device,
    share_without_overhead,
    taken_by_others_s,
)
from gpulab.features.goodput.events import Operation, Partition, Phases, Profiled
from gpulab.features.goodput.findings import (
    busy_exceeds_step,
    computes_in_some_steps,
    device_not_recorded,
    goodput_uncertain,
    profiler_overhead,
    recordings_differ,
)
from gpulab.features.goodput.result import GoodputReport, StepSource
from gpulab.report.feature import Draft, Feature, Section, View
from gpulab.report.report import VariantReport, fields_of
from gpulab.report.state import Keep, RunState, VariantState

if TYPE_CHECKING:
    from gpulab.features.roofline.bound import Point

TOLERANCE = 0.05
"""A goodput is certain within this, and a step this much too short is still right."""


class OtherWay(StrEnum):
    """Another way to know a goodput."""

    SECOND_RECORDING = "second recording"
    SOLO_RUN = "solo run"
    PLAIN_STEP = "plain step"
    """The step in the profiler's process, without it."""
    PROFILED_STEP = "profiled step"
    OVERHEAD_INSIDE = "overhead inside"
    """What recording takes is placed elsewhere: inside of operations."""
    PHASES = "phases"
    """Timed without the profiler, between the rounds."""


_Estimate = tuple[float, OtherWay]


@dataclass(frozen=True)
class StepGoodput:
    """A step without the profiler. `farthest` is the estimate by another way that differs most."""

    step_s: float
    step_source: StepSource
    recording: Partition
    seconds: dict[str, float]
    repeated: dict[str, float]
    """Shares of the step by the second recording; empty without one."""
    busy_s: float
    """What the device was busy, as recorded; 0 of a CPU."""
    overhead: float
    host_only: bool
    farthest: _Estimate | None

    @property
    def goodput(self) -> float:
        return self.seconds.get(USEFUL, 0.0) / self.step_s

    @property
    def uncertainty(self) -> float:
        too_long = max(0.0, self.busy_s / self.step_s - 1)
        return max(too_long, abs(self.farthest[0] - self.goodput) if self.farthest else 0.0)


def step_goodput(
    state: RunState, variant: VariantState, profiled: Profiled, time: Estimate | None
) -> StepGoodput:
    """Goodput and parts of a profiled variant's step; `time` is what its rounds say."""
    partition = profiled.partition
    steps = profiled.steps
    plain_s = profiled.plain_s
    rounds_s = _rounds_s(state, variant, time)
    if rounds_s and isinstance(state.job, Follow):  # others than the recorded may be validation
        rounds_s = min(rounds_s, plain_s)
    device_busy_s = taken_s = 0.0
    if partition.on_device:
        step_s = _device_step_s(
            rounds_s, _device_s(state, variant, time), busy_s(partition) / steps, plain_s
        )
        profiled = _fitting_first(profiled, step_s)
        partition = profiled.partition
        device_busy_s = busy_s(partition) / steps
        unprofiled_s = min(step_s, plain_s)
    else:
        step_s = rounds_s or plain_s
        unprofiled_s = plain_s
        taken_s = taken_by_others_s(partition, steps, plain_s) / steps
    seconds = _parts(profiled, partition, step_s)
    repeated = {} if profiled.repeated is None else _parts(profiled, profiled.repeated, step_s)
    source = StepSource.ROUNDS if step_s == rounds_s else StepSource.PROFILER
    goodput = seconds.get(USEFUL, 0.0) / step_s
    if partition.on_device:
        estimates = [*_device_estimates(variant, profiled, step_s, source)]
    else:
        estimates = [*_host_estimates(variant, profiled), _other_step(goodput, plain_s / step_s)]
    return StepGoodput(
        step_s=step_s,
        step_source=source,
        recording=partition,
        seconds=seconds,
        repeated={name: part_s / step_s for name, part_s in repeated.items()},
        busy_s=device_busy_s,
        overhead=(profiled.profiled_s - taken_s) / unprofiled_s - 1,
        host_only=state.on_gpu and not partition.on_device,
        farthest=max(estimates, key=lambda estimate: abs(estimate[0] - goodput), default=None),
    )


def _parts(profiled: Profiled, partition: Partition, step_s: float) -> dict[str, float]:
    """Seconds of a step by one of its recordings."""
    if partition.on_device:
        return parts_on_device(partition, profiled.steps, step_s)
    parts = parts_on_cpu(partition, profiled.steps, profiled.plain_s, step_s)
    return _told_apart(parts, profiled, step_s)


def _told_apart(parts: dict[str, float], profiled: Profiled, step_s: float) -> dict[str, float]:
    """With what the thread did not run as waiting and contention, by the system's own counter.
    Where nobody read that, only waits that samples saw are known.
    """
    off_s = parts.get("preempted", 0.0)
    waited = profiled.waited
    if waited is None:
        waited = sum(line.waiting for line in profiled.lines)
    waited_s = min(off_s, waited * step_s)
    rest = "not running" if profiled.waited is None else "preempted"
    told = {**parts, "preempted": 0.0, "waiting": waited_s, rest: off_s - waited_s}
    return {name: told[name] for name in CATEGORIES if name in parts or told.get(name)}


def _device_step_s(
    rounds_s: float | None, device_s: float | None, recorded_s: float, plain_s: float
) -> float:
    """That of the rounds; the profiler's, where the device was in another state than in them."""
    if rounds_s is None:
        return plain_s
    longest_s = rounds_s if device_s is None else min(rounds_s, device_s)
    is_another_state = recorded_s > longest_s + TOLERANCE * rounds_s
    fits = recorded_s <= plain_s * (1 + TOLERANCE)
    return plain_s if is_another_state and fits else rounds_s


def _fitting_first(profiled: Profiled, step_s: float) -> Profiled:
    """With its recordings exchanged where only the second is no longer than the step.

    Copies share the host's memory with other work: on an H100 those of one recording took 12 %
    longer than those of the next.
    """
    first = profiled.partition
    second = profiled.repeated
    longest_s = profiled.steps * step_s * (1 + TOLERANCE)
    if second is None or busy_s(first) <= longest_s or busy_s(second) > longest_s:
        return profiled
    window_s = second.window_s / profiled.steps
    return replace(profiled, partition=second, repeated=first, profiled_s=window_s)


def _rounds_s(state: RunState, variant: VariantState, time: Estimate | None) -> float | None:
    """The step by the host's clock; None with cold caches, which the profiler's are not. Of a
    program, that of all its plain steps.
    """
    job = state.timed_job
    if isinstance(state.job, Follow):
        return time.value if time else None
    if job is None or job.cache != Cache.HOT:
        return None
    if job.clock == Clock.WALL:
        return time.value if time else None
    return _other_clock_s(variant, Clock.WALL)


def _device_s(state: RunState, variant: VariantState, time: Estimate | None) -> float | None:
    """Return what the device took in the rounds, with whatever gaps are in it."""
    job = state.timed_job
    if job is not None and job.clock == Clock.DEVICE:
        return time.value if time else None
    return _other_clock_s(variant, Clock.DEVICE)


def _other_clock_s(variant: VariantState, clock: Clock) -> float | None:
    other = variant.last(OtherClock, clock)
    return median(other.times_s) if other and other.times_s else None


def _device_estimates(
    variant: VariantState, profiled: Profiled, step_s: float, source: StepSource
) -> Iterator[_Estimate]:
    """The goodput by the other recording, and over other times of the step."""
    useful_s = profiled.partition.seconds.get(USEFUL, 0.0) / profiled.steps
    if profiled.repeated is not None:
        repeated_s = profiled.repeated.seconds.get(USEFUL, 0.0) / profiled.steps
        yield _share(repeated_s, step_s), OtherWay.SECOND_RECORDING
    if source == StepSource.PROFILER:  # which the profiler may have made longer already
        yield _share(useful_s, profiled.profiled_s), OtherWay.PROFILED_STEP
        return
    if solo := variant.last(SoloRun):
        yield _share(useful_s, solo.time_s), OtherWay.SOLO_RUN
    if profiled.plain_s < step_s:
        yield _share(useful_s, profiled.plain_s), OtherWay.PLAIN_STEP


def _host_estimates(variant: VariantState, profiled: Profiled) -> Iterator[_Estimate]:
    """Goodput by the other recording, by overhead placed elsewhere, and by the phases."""
    partition = profiled.partition
    steps = profiled.steps
    plain_s = profiled.plain_s
    if profiled.repeated is not None:
        yield _cpu_share(profiled, repeated=True), OtherWay.SECOND_RECORDING
    if partition.around:
        yield _cpu_share(profiled, inside=HALF_INSIDE), OtherWay.OVERHEAD_INSIDE
    else:
        for share in share_without_overhead(partition, steps, plain_s):
            middle_share = (share + partition.goodput) / 2  # neither end is likely
            yield middle_share, OtherWay.OVERHEAD_INSIDE
    phases = variant.last(Phases)
    share_of_phases = _ran(phases) if phases and partition.marked else None
    if share_of_phases is not None:
        off_s = parts_on_cpu(partition, steps, plain_s, 1.0).get("preempted", 0.0)
        yield share_of_phases * (1 - off_s), OtherWay.PHASES


def _other_step(goodput: float, ratio: float) -> _Estimate:
    """The goodput of a step whose parts changed by as much as the step did, but differently.

    The process of the profiler took `ratio` times as long for a step as the rounds. A share that
    becomes this much more, or less, likely against the rest moves by s (1 - s) times the
    difference.
    """
    change = goodput * (1 - goodput) * abs(ratio - 1)
    return min(1.0, goodput + change), OtherWay.PLAIN_STEP


def _cpu_share(profiled: Profiled, *, inside: float = 0.0, repeated: bool = False) -> float:
    partition = profiled.repeated if repeated and profiled.repeated else profiled.partition
    return parts_on_cpu(partition, profiled.steps, profiled.plain_s, 1.0, inside).get(USEFUL, 0.0)


def _ran(phases: Phases) -> float | None:
    """The share of "useful" in what ran or waited for it; None where no time is known."""
    total_s = sum(
        seconds if name in WAITING else phases.running_s.get(name, 0.0)
        for name, seconds in phases.seconds.items()
    )
    return phases.running_s.get(USEFUL, 0.0) / total_s if total_s else None


def _share(useful_s: float, step_s: float) -> float:
    return min(1.0, useful_s / step_s)


_MOST_OVERHEAD = 0.1
_MOST_KERNELS, _MOST_OPERATIONS = 40, 200
_WAITS = 0.5
"""A phase whose thread runs for less of its time than this waits, or was preempted."""


def goodput_of(
    state: RunState, variant: VariantState, time: Estimate | None, point: Point | None
) -> GoodputReport | None:
    """None where neither phases nor a profiler recorded anything."""
    phases, running = _phases(variant.last(Phases))
    waiting = [name for name, share in running.items() if share < _WAITS]
    profiled = variant.last(Profiled)
    job = state.timed_job
    if profiled is None:
        return GoodputReport(phases=phases, running=running, waiting=waiting) if phases else None
    step = step_goodput(state, variant, profiled, time)
    partition = step.recording
    # The step's least time by its roofs; the fraction of the roof is this over the measured time.
    cold = job is not None and job.cache == Cache.COLD  # it was profiled with warm caches
    ideal_s = point.fraction.value * time.value if point and time and not cold else None
    on_link = isinstance(job, Measure) and job.roof in LINKS  # which no useful time is spent on
    useful_s = step.seconds.get(USEFUL, 0.0)
    hidden = None
    if partition.copied_s:
        hidden = max(0.0, 1 - partition.seconds["copies"] / partition.copied_s)
    checked = variant.last(Checked)
    right = checked is not None and checked.ok
    unreliable = _why_unreliable(profiled, step)
    overhead = [profiler_overhead(profiled.variant, overhead=step.overhead)]
    reasons = unreliable or (overhead if step.overhead > _MOST_OVERHEAD else [])
    return GoodputReport(
        **fields_of(
            step,
            "goodput",
            "seconds",
            "repeated",
            "step_s",
            "step_source",
            "overhead",
            "uncertainty",
        ),
        **fields_of(partition, "marked"),
        **fields_of(profiled, "steps", "peak_bytes", "trace", "lines"),
        phases=phases,
        running=running,
        waiting=waiting,
        partition={name: seconds / step.step_s for name, seconds in step.seconds.items()},
        efficiency=ideal_s / useful_s if ideal_s and useful_s and not on_link else None,
        product=ideal_s / step.step_s if ideal_s else None,
        hidden=hidden,
        items_per_s=variant.items / time.value if variant.last(Built) and time and right else None,
        reliable=not unreliable,
        accurate=not reasons,
        reasons=reasons,
        operations=_operations(profiled, step),
    )


def _phases(phases: Phases | None) -> tuple[dict[str, float], dict[str, float]]:
    """The share of each phase, and how much of it the thread ran."""
    total_s = sum(phases.seconds.values()) if phases else 0.0
    if phases is None or not total_s:
        return {}, {}
    running = {
        name: running_s / phases.seconds[name]
        for name, running_s in phases.running_s.items()
        if phases.seconds.get(name)
    }
    return {name: seconds / total_s for name, seconds in phases.seconds.items()}, running


def _operations(profiled: Profiled, step: StepGoodput) -> list[Operation]:
    """Return the operations of a step. Times of a device are as recorded, the host's are scaled."""
    recorded_s = (profiled.repeated or profiled.partition).window_s / profiled.steps
    scale = step.step_s / recorded_s if recorded_s else 1.0
    kernels = [row for row in profiled.operations if row.on_device]
    host = [row for row in profiled.operations if not row.on_device]
    rows = [_one_step(row, profiled.steps, 1.0) for row in kernels[:_MOST_KERNELS]]
    rows = [replace(row, share=row.self_s / step.step_s) for row in rows]
    return rows + [_one_step(row, profiled.steps, scale) for row in host[:_MOST_OPERATIONS]]


def _one_step(row: Operation, steps: int, scale: float) -> Operation:
    """A row of a window as that of one of its steps, the seconds of the host times `scale`."""
    amounts = {
        name: getattr(row, name) / steps
        for name in ("calls", "device_s", "device_total_s", "memory_bytes", "flops", "bytes")
        if getattr(row, name) is not None
    }
    total_s = None if row.total_s is None else row.total_s / steps * scale
    return replace(row, self_s=row.self_s / steps * scale, total_s=total_s, **amounts)


def _why_unreliable(profiled: Profiled, step: StepGoodput) -> list[Finding]:
    """Why the goodput is not certain within the tolerance."""
    name = profiled.variant
    if step.host_only:
        return [device_not_recorded(name)]
    if not profiled.repeatable:
        return [recordings_differ(name)]
    if step.busy_s > step.step_s * (1 + TOLERANCE):
        return [busy_exceeds_step(name, busy_s=step.busy_s, step_s=step.step_s)]
    if step.uncertainty <= TOLERANCE or step.farthest is None:
        return []
    other, by = step.farthest
    return [goodput_uncertain(name, goodput=step.goodput, other=other, by=by)]


_PRODUCTS = re.compile(
    r"aten::(mm|bmm|addmm|baddbmm|addbmm|mv|dot|_?convolution|\w*attention\w*|linalg_\w+)$"
)
"""Operations that are most of a step where there are any."""
_LEAST = 0.5
"""Products in each step on average, below which most steps do without."""


def _derived(draft: Draft) -> Iterator[Event]:
    """Catches variants that skip products which the baseline makes in each step."""
    baseline = draft.state.baseline
    usual = _products_per_step(baseline) if baseline else None
    if usual is None or usual < 1:
        return
    for name, variant in draft.state.variants.items():
        products = _products_per_step(variant)
        if products is not None and 0 < products < _LEAST and not variant.judged:
            reason = computes_in_some_steps(name, products=products, baseline=usual)
            yield VariantRefused(variant=name, reason=reason)


def _products_per_step(variant: VariantState) -> float | None:
    profiled = variant.last(Profiled)
    if profiled is None or profiled.steps * _LEAST < 1:
        return None
    if any(row.on_device for row in profiled.operations):
        return None  # kernels do not say which operation they are
    calls = (row.calls for row in profiled.operations if _PRODUCTS.match(row.name))
    return sum(calls) / profiled.steps


def _added(before: Phases, event: Phases) -> Phases:
    """One window together with those before it."""
    return replace(
        event,
        steps=before.steps + event.steps,
        seconds=_sums(before.seconds, event.seconds),
        running_s=_sums(before.running_s, event.running_s),
    )


def _sums(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    return {name: first.get(name, 0.0) + second.get(name, 0.0) for name in {**first, **second}}


def _add_to_variant(draft: Draft, variant: VariantState, report: VariantReport) -> VariantReport:
    goodput = goodput_of(draft.state, variant, report.time_s, report.roofline)
    return report.with_parts(goodput=goodput)


FEATURE = Feature(
    "goodput",
    variant_part=result.VariantPart,
    run_part=result.RunPart,
    keeps={Phases: Keep(merge=_added)},
    derive_events=_derived,
    add_to_variant=_add_to_variant,
    views=(
        View("goodput.view:phases", Section.TIME),
        View("goodput.view:goodput", Section.TIME),
        View("goodput.operation_table:operations", Section.OPERATIONS),
        View("goodput.view:traces", Section.TRACES),
        View("goodput.view:job_goodput", Section.JOBS),
    ),
)
