"""Where the time of a step goes, as a part of the report: from the windows of a variant.

On a GPU the step is that of the rounds. Where kernels took longer in the recording than the step,
or than the device in the rounds, the device was in another state (a power cap): then the step is
that of the profiler's own process. CUPTI, once started, stays attached to a process and makes its
launches longer, so that step is not taken otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.estimate import Estimate
from gpulab.core.events import Built, Checked, OtherClock, SoloRun
from gpulab.core.findings import Finding
from gpulab.core.jobs import Follow, Measure
from gpulab.core.payloads import CATEGORIES, LINKS, USEFUL, WAITING
from gpulab.core.statuses import Cache, Clock
from gpulab.features.goodput import result
from gpulab.features.goodput.analysis import (
    busy_s,
    parts_on_cpu,
    parts_on_device,
    taken_by_others_s,
)
from gpulab.features.goodput.events import Operation, Partition, Phases, Profiled
from gpulab.features.goodput.findings import (
    busy_exceeds_step,
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
_MOST_OVERHEAD = 0.1
_WAITS = 0.5
"""A phase whose thread runs for less of its time than this waits, or was preempted."""
_OtherWay = tuple[float, str]
"""A goodput by another way to know it, and which: a key of `OTHER_WAYS`."""


@dataclass(frozen=True)
class _Step:
    """A step without the profiler, and what was recorded of it: the partition that counts, and
    perhaps another.
    """

    profiled: Profiled
    step_s: float
    source: StepSource

    @property
    def recording(self) -> Partition:
        return self.profiled.partition

    @property
    def busy_s(self) -> float:
        """What the device was busy, as recorded; 0 of a CPU."""
        return busy_s(self.recording) / self.profiled.steps if self.recording.on_device else 0.0

    @property
    def overhead(self) -> float:
        """What the profiler adds to a step, relative."""
        profiled = self.profiled
        if self.recording.on_device:
            return profiled.profiled_s / min(self.step_s, profiled.plain_s) - 1
        taken_s = taken_by_others_s(self.recording, profiled.steps, profiled.plain_s)
        return (profiled.profiled_s - taken_s / profiled.steps) / profiled.plain_s - 1

    def parts(self) -> dict[str, float]:
        """Seconds of the step by category."""
        profiled = self.profiled
        if self.recording.on_device:
            return parts_on_device(self.recording, profiled.steps, self.step_s)
        parts = parts_on_cpu(self.recording, profiled.steps, profiled.plain_s, self.step_s)
        return _told_apart(parts, profiled, self.step_s)


def _step_of(
    state: RunState, variant: VariantState, profiled: Profiled, time: Estimate | None
) -> _Step:
    """The step that was profiled; `time` is what its rounds say."""
    rounds_s = _clock_s(state, variant, Clock.WALL, time)
    if state.timed_job is not None and state.timed_job.cache != Cache.HOT:
        rounds_s = None  # the profiler's are
    if isinstance(state.job, Follow) and time is not None:
        rounds_s = min(time.value, profiled.plain_s)  # others than the recorded may be validation
    step_s = rounds_s or profiled.plain_s
    if rounds_s and _is_another_state(state, variant, profiled, rounds_s, time):
        step_s = profiled.plain_s
    source = StepSource.ROUNDS if step_s == rounds_s else StepSource.PROFILER
    return _Step(profiled, step_s, source)


def _clock_s(
    state: RunState, variant: VariantState, clock: Clock, time: Estimate | None
) -> float | None:
    """The step in the rounds by a clock, where it was read: the device's with whatever gaps are in
    it.
    """
    if state.timed_job is not None and state.timed_job.clock == clock:
        return time.value if time else None
    other = variant.last(OtherClock, clock)
    return median(other.times_s) if other and other.times_s else None


def _is_another_state(
    state: RunState,
    variant: VariantState,
    profiled: Profiled,
    rounds_s: float,
    time: Estimate | None,
) -> bool:
    """Return whether the device was in another one than in the rounds: busy for longer, and for no
    longer than a step of the profiler's process.
    """
    if not profiled.partition.on_device:
        return False
    recorded_s = busy_s(profiled.partition) / profiled.steps
    longest_s = min(rounds_s, _clock_s(state, variant, Clock.DEVICE, time) or rounds_s)
    is_longer = recorded_s > longest_s + TOLERANCE * rounds_s
    return is_longer and recorded_s <= profiled.plain_s * (1 + TOLERANCE)


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


def _ways_on_device(variant: VariantState, step: _Step) -> Iterator[_OtherWay]:
    """The goodput by the other recording, and over other times of the step."""
    profiled = step.profiled
    useful_s = step.recording.seconds.get(USEFUL, 0.0) / profiled.steps
    if profiled.repeated is not None:
        repeated_s = profiled.repeated.seconds.get(USEFUL, 0.0) / profiled.steps
        yield min(1.0, repeated_s / step.step_s), "second recording"
    if step.source == StepSource.PROFILER:  # which the profiler may have made longer already
        yield min(1.0, useful_s / profiled.profiled_s), "profiled step"
        return
    if solo := variant.last(SoloRun):
        yield min(1.0, useful_s / solo.time_s), "solo run"
    if profiled.plain_s < step.step_s:
        yield min(1.0, useful_s / profiled.plain_s), "plain step"


def _ways_on_cpu(variant: VariantState, step: _Step, goodput: float) -> Iterator[_OtherWay]:
    """The goodput by the other recording, by the phases, and of a step whose parts changed by as
    much as the step did, but differently.
    """
    profiled = step.profiled
    plain_s = profiled.plain_s
    if profiled.repeated is not None:
        again = parts_on_cpu(profiled.repeated, profiled.steps, plain_s, 1.0)
        yield again.get(USEFUL, 0.0), "second recording"
    if not step.recording.around:  # an earlier version, of whose recordings it is not known
        took_s = step.recording.window_s / profiled.steps - plain_s
        useful_s = step.recording.seconds.get(USEFUL, 0.0) / profiled.steps
        for least_s in (useful_s - took_s, useful_s):
            yield (min(1.0, max(0.0, least_s) / plain_s) + goodput) / 2, "overhead inside"
    phases = variant.last(Phases)
    share_of_phases = _ran(phases) if phases and step.recording.marked else None
    if share_of_phases is not None:
        parts = parts_on_cpu(step.recording, profiled.steps, plain_s, 1.0)
        yield share_of_phases * (1 - parts.get("preempted", 0.0)), "phases"
    # a share that becomes this much more, or less, likely against the rest moves by s (1 - s) times
    # the difference
    change = goodput * (1 - goodput) * abs(plain_s / step.step_s - 1)
    yield min(1.0, goodput + change), "plain step"


def _ran(phases: Phases) -> float | None:
    """The share of "useful" in what ran or waited for it; None where no time is known."""
    total_s = sum(
        seconds if name in WAITING else phases.running_s.get(name, 0.0)
        for name, seconds in phases.seconds.items()
    )
    return phases.running_s.get(USEFUL, 0.0) / total_s if total_s else None


def goodput_of(
    state: RunState, variant: VariantState, time: Estimate | None, point: Point | None
) -> GoodputReport | None:
    """None where neither phases nor a profiler recorded anything."""
    phases, running = _phases(variant.last(Phases))
    report = GoodputReport(
        phases=phases,
        running=running,
        waiting=[name for name, share in running.items() if share < _WAITS],
    )
    profiled = variant.last(Profiled)
    if profiled is not None:
        step = _step_of(state, variant, profiled, time)
        return _of_step(state, variant, step, time, point, report)
    return report if phases else None


def _of_step(
    state: RunState,
    variant: VariantState,
    step: _Step,
    time: Estimate | None,
    point: Point | None,
    report: GoodputReport,
) -> GoodputReport:
    """The report with the parts of a profiled step."""
    job = state.timed_job
    seconds = step.parts()
    useful_s = seconds.get(USEFUL, 0.0)
    goodput = useful_s / step.step_s
    ways = [*_ways_on_cpu(variant, step, goodput)]
    if step.recording.on_device:
        ways = [*_ways_on_device(variant, step)]
    farthest = max(ways, key=lambda way: abs(way[0] - goodput), default=(goodput, ""))
    uncertainty = max(0.0, step.busy_s / step.step_s - 1, abs(farthest[0] - goodput))
    # The step's least time by its roofs; the fraction of the roof is this over the measured time.
    ideal_s = None
    if point and time and step.source == StepSource.ROUNDS:
        ideal_s = point.fraction.value * time.value
    on_link = isinstance(job, Measure) and job.roof in LINKS  # which no useful time is spent on
    copied_s = step.recording.copied_s
    checked = variant.last(Checked)
    right = variant.last(Built) and time and checked is not None and checked.ok
    reasons = _why_unreliable(step, state, goodput, uncertainty, farthest)
    reliable = not reasons
    if reliable and step.overhead > _MOST_OVERHEAD:
        reasons = [profiler_overhead(variant.name, overhead=step.overhead)]
    return replace(
        report,
        **fields_of(step.profiled, "steps", "trace", "lines"),
        goodput=goodput,
        partition={name: part_s / step.step_s for name, part_s in seconds.items()},
        seconds=seconds,
        step_s=step.step_s,
        step_source=step.source,
        marked=step.recording.marked,
        efficiency=ideal_s / useful_s if ideal_s and useful_s and not on_link else None,
        hidden=max(0.0, 1 - step.recording.seconds["copies"] / copied_s) if copied_s else None,
        items_per_s=variant.items / time.value if right and time else None,
        overhead=step.overhead,
        uncertainty=uncertainty,
        reliable=reliable,
        reasons=reasons,
        operations=_operations(step),
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


def _operations(step: _Step) -> list[Operation]:
    """Return the operations of a step. Times of a device are as recorded, the host's are scaled."""
    profiled = step.profiled
    recorded_s = (profiled.repeated or profiled.partition).window_s / profiled.steps
    scale = step.step_s / recorded_s if recorded_s else 1.0
    rows = []
    for row in profiled.operations:
        if row.on_device:
            of_step = _one_step(row, profiled.steps, 1.0)
            rows.append(replace(of_step, share=of_step.self_s / step.step_s))
        else:
            rows.append(_one_step(row, profiled.steps, scale))
    return rows


def _one_step(row: Operation, steps: int, scale: float) -> Operation:
    """A row of a window as that of one of its steps, the seconds of the host times `scale`."""
    amounts = {
        name: getattr(row, name) / steps
        for name in ("calls", "device_s", "device_total_s", "memory_bytes", "flops", "bytes")
        if getattr(row, name) is not None
    }
    total_s = None if row.total_s is None else row.total_s / steps * scale
    return replace(row, self_s=row.self_s / steps * scale, total_s=total_s, **amounts)


def _why_unreliable(
    step: _Step, state: RunState, goodput: float, uncertainty: float, farthest: _OtherWay
) -> list[Finding]:
    """Why the goodput is not certain within the tolerance."""
    name = step.profiled.variant
    if state.on_gpu and not step.recording.on_device:
        return [device_not_recorded(name)]
    if not step.profiled.repeatable:
        return [recordings_differ(name)]
    if step.busy_s > step.step_s * (1 + TOLERANCE):
        return [busy_exceeds_step(name, busy_s=step.busy_s, step_s=step.step_s)]
    if uncertainty <= TOLERANCE:
        return []
    other, by = farthest
    return [goodput_uncertain(name, goodput=goodput, other=other, by=by)]


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
    add_to_variant=_add_to_variant,
    views=(
        View("goodput.view:phases", Section.TIME),
        View("goodput.view:goodput", Section.TIME),
        View("goodput.operation_table:operations", Section.OPERATIONS),
        View("goodput.view:traces", Section.TRACES),
        View("goodput.view:job_goodput", Section.JOBS),
    ),
)
