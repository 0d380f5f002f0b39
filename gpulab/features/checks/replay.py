"""Whether steps take longer alone, or when the values of their inputs are new, than they do in a
timed block.

What is remembered from call to call is computed then. A variant is asked about the time that it
gains over the baseline: where most of that time is back, and the baseline's is not longer as well,
its timed steps did not compute.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

import torch

from gpulab.core.findings import Finding
from gpulab.engine.build.build import Build, Builder, call_each
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.measure.candidate import Candidate
from gpulab.engine.measure.clock import WallClock, wait_for
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.features.checks.findings import computes_when_waited_for, remembers_its_inputs
from gpulab.features.checks.stepping import FAILS
from gpulab.features.checks.values import AllValues, Own, Write, exchange

_OF_GAIN = 0.4
"""The part of the time it gains that a variant may take longer, beyond what the baseline does."""
_LEAST_GAIN = 0.05
"""A variant that gains less of the baseline's time has nothing to hide."""
_LONGER = 1.5
_REPEATS = 5
_MOST_S = 0.02
_CONFIRM = 3
_CONFIRMING = 4
"""Times that it is looked at, with so many more steps each time."""
_PAUSES_S = (10e-6, 2e-3)
_STEPS = 4
"""That follow each other, each on values of its own."""
Clocks = tuple[WallClock, WallClock | None]
"""The verdict's, and on a GPU the other one."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step: in a block, alone after a pause, and on values written before it."""

    block_s: float
    alone_s: float
    same_s: float
    new_s: float
    """The same values are written again, or new ones: both cost the same."""

    @property
    def more_alone_s(self) -> float:
        return self.alone_s - self.block_s

    @property
    def more_on_new_s(self) -> float:
        return self.new_s - self.same_s


@dataclass(frozen=True)
class TimedBuild:
    """One candidate with what is known of it."""

    candidate: Candidate
    build: Build
    inputs: Sequence[torch.Tensor]
    own: Own


def examine(
    builder: Builder,
    clocks: Clocks,
    variant: TimedBuild,
    baseline: TimedBuild,
    draw: random.Random,
    known: StepTimes | None = None,
) -> tuple[StepTimes, StepTimes, Finding | None]:
    """The times of a variant's steps and the baseline's, and what is suspicious about them each
    time they are taken.

    `known` are the baseline's of a moment ago, which stand for it until something is suspicious.
    """
    low, high = _PAUSES_S
    # one for all: a step after a shorter one may be the shortest
    pause_s = low * (high / low) ** draw.random()
    for attempt in range(_CONFIRM):
        repeats = max(_repeats(variant, baseline), _CONFIRMING * attempt)
        subjects = [variant] if known and not attempt else [variant, baseline]
        taken = _take(builder, clocks, subjects, repeats, pause_s, draw)
        ours = taken[0].of_variant()
        theirs = known if known and not attempt else taken[1].of_baseline()
        reason = _reason(variant, ours, baseline, theirs)
        if reason is None:
            break
    return ours, theirs, reason


def _reason(
    variant: TimedBuild, ours: StepTimes, baseline: TimedBuild, theirs: StepTimes
) -> Finding | None:
    items = variant.candidate.items
    baseline_items = baseline.candidate.items
    own_s = ours.block_s / items
    base_s = theirs.block_s / baseline_items
    gain_s = base_s - own_s
    if gain_s < _LEAST_GAIN * base_s:
        return None
    name = variant.candidate.variant.name
    alone_s = ours.more_alone_s / items - max(0.0, theirs.more_alone_s / baseline_items)
    waits = not variant.own.asynchronous  # else several steps are on their way in a block
    if waits and alone_s > _OF_GAIN * gain_s and _is_longer(ours.alone_s, ours.block_s):
        ratios = {"ratio": ours.alone_s / ours.block_s, "baseline": theirs.alone_s / theirs.block_s}
        return computes_when_waited_for(name, **ratios)
    new_s = ours.more_on_new_s / items - max(0.0, theirs.more_on_new_s / baseline_items)
    if new_s > _OF_GAIN * gain_s and _is_longer(ours.new_s, ours.same_s):
        ratios = {"ratio": ours.new_s / ours.same_s, "baseline": theirs.new_s / theirs.same_s}
        return remembers_its_inputs(name, **ratios)
    return None


def _is_longer(time_s: float, usual_s: float) -> bool:
    """By more than cold caches and predictors explain: NumPy after a pause took 1.26x."""
    return time_s > _LONGER * usual_s


def _repeats(*subjects: TimedBuild) -> int:
    step_s = sum(subject.candidate.step_s for subject in subjects)
    return max(1, min(_REPEATS, int(_MOST_S / (step_s * (2 + 2 * _STEPS)))))


@dataclass
class _Taken:
    """Seconds of one subject, one of each kind a repeat.

    What other work on the machine adds counts in the variant's favour. So of what is to be longer
    the shortest counts of the variant, and the usual of the baseline.
    """

    blocks: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    same: list[float] = field(default_factory=list)
    new: list[float] = field(default_factory=list)

    def of_variant(self) -> StepTimes:
        return StepTimes(
            _usual(self.blocks), _shortest(self.alone), _usual(self.same), _shortest(self.new)
        )

    def of_baseline(self) -> StepTimes:
        return StepTimes(
            _usual(self.blocks), _usual(self.alone), _shortest(self.same), _usual(self.new)
        )


def _take(
    builder: Builder,
    clocks: Clocks,
    subjects: Sequence[TimedBuild],
    repeats: int,
    pause_s: float,
    draw: random.Random,
) -> list[_Taken]:
    """Of each subject, in turn."""
    taken = [_Taken() for _ in subjects]
    for _ in range(repeats):
        for subject, times in zip(subjects, taken, strict=True):
            candidate = subject.candidate
            block = clocks[0].block(
                subject.build, candidate.steps, lead_in=min(1, candidate.lead_in)
            )
            clocks[0].forget()
            times.blocks.append(block.time_s)
            times.alone.append(_alone_s(clocks, subject, block.time_s, pause_s))
            if subject.inputs:
                same_s, new_s = _pair_on_written(builder, subject, draw)
                times.same.append(same_s)
                times.new.append(new_s)
    return taken


def _shortest(times: list[float]) -> float:
    return min(times, default=0.0)


def _usual(times: list[float]) -> float:
    return median(times) if times else 0.0


def _alone_s(clocks: Clocks, subject: TimedBuild, block_s: float, pause_s: float) -> float:
    """Seconds of a step after a pause.

    On a GPU by the device's clock: a single step shows what a queue of them hides, its launches and
    the wait for it.
    """
    build = subject.build
    clock, other = clocks
    device = next((entry for entry in clocks if isinstance(entry, DeviceClock)), None)
    timed = clock if device is None or device.exposes(build) else device
    in_block_s = block_s
    if timed is other:
        in_block_s = timed.block(build, subject.candidate.steps).time_s
    with build.context():
        _pause(pause_s)
        alone_s = timed.single_s(build)
    timed.forget()
    return block_s + alone_s - in_block_s


def _pause(pause_s: float) -> None:
    """Without giving the core away, which would empty its caches."""
    until = perf_counter() + pause_s
    while perf_counter() < until:
        pass


def _pair_on_written(
    builder: Builder, subject: TimedBuild, draw: random.Random
) -> tuple[float, float]:
    """Seconds of a step and the write before it: of the same values each time, and of new ones.

    A matrix that must be positive definite is not with a few elements exchanged: then all values
    change, or none.
    """
    for few in (draw.random() < 0.5, False):
        with suppress(*FAILS):
            same_s = _on_written(builder, subject, draw, few=few, changes=False)
            return same_s, _on_written(builder, subject, draw, few=few, changes=True)
    return 0.0, 0.0


def _on_written(
    builder: Builder, subject: TimedBuild, draw: random.Random, *, few: bool, changes: bool
) -> float:
    """Seconds of a step and the write before it, of other values each time or of the same."""
    build = subject.build
    writes, undo = _writes(subject, draw, few=few, changes=changes)
    try:
        build.restore()
        with build.context():
            mark_step()
            writes[0]()
            wait_for(call_each((build.work.step,)))
            builder.wait()
            started = perf_counter()
            for write in writes:
                write()
                returned = call_each((build.work.step,))
            wait_for(returned)
            builder.wait()
            return (perf_counter() - started) / len(writes)
    finally:
        builder.wait()
        undo()
        build.restore()
        builder.wait()


def _writes(
    subject: TimedBuild, draw: random.Random, *, few: bool, changes: bool
) -> tuple[list[Write], Write]:
    """Writes to the inputs, each with values of its own or all alike; and what undoes them."""
    inputs = subject.inputs
    whole = [entry.change for entry in subject.own.expected if isinstance(entry.change, AllValues)]
    drawn = []
    if few or not whole:
        drawn = [change for _ in range(_STEPS) if (change := exchange(inputs, draw))]
    if drawn:
        made = [change.on(inputs) for change in drawn]
        writes = [write for write, _ in made] if changes else [made[0][0]] * _STEPS

        def undo_all() -> None:
            for _, undo in reversed(made):
                undo()

        return writes, undo_all
    if not whole:
        return [nothing] * _STEPS, nothing
    write, undo = whole[0].on(inputs)
    return [write if place % 2 or not changes else undo for place in range(_STEPS)], undo


def nothing() -> None:
    pass
