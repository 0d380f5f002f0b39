"""Whether steps take longer alone, or when the values of their inputs are new, than they do in a
timed block.

What is remembered from call to call is computed then. A variant is asked about the time that it
gains over the baseline: where most of that time is back, by more than a cold step explains, and the
baseline's is not longer as well, its timed steps did not compute.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import torch

from gpulab.core.findings import Finding
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.measure.candidate import Candidate
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.step_clock import call_each, wait_for
from gpulab.features.checks.findings import computes_when_waited_for, remembers_its_inputs
from gpulab.features.checks.values import Own

_GAIN_SHARE = 0.4
"""The part of the time it gains that a variant may take longer, beyond what the baseline does."""
_LEAST_GAIN = 1 / 3
"""Who gains less of the baseline's time loses it to cold caches and predictors as well."""
_LONGER = 1.5
"""What a variant's steps are longer by must be so many times what the baseline's are longer by."""
_COLD_S = 30e-6
_COLD_GAIN_SHARE = 0.6
_LONGER_IF_COLD = 4.0
"""The same of steps that are longer by less than a few cold operations may be."""
_LEARNED, _LEARNED_S = 5.0, 0.3e-3
"""Times as long, and how much longer, that a step of a CPU may take on new values: the branches of
a binary search over 4,096 old ones are learned, and it took 2.8 to 4.1 times as long on an EPYC.
Some 30,000 branches are kept, of 20 cycles each if they are not; caches of the gauntlet take 5.8
times as long and more.
"""
_REPEATS = 5
_MOST_S = 0.02
CONFIRM = 3
_CONFIRMING = 4
"""Times that it is looked at, with so many more steps each time."""
_PAUSES_S = (10e-6, 2e-3)
_STEPS = 7
"""That a look takes of a build, beside its blocks."""
Clocks = tuple[WallClock, WallClock | None]
"""The verdict's, and on a GPU the other one."""


@dataclass(frozen=True)
class StepTimes:
    """Seconds of a step: in a block, alone after a pause, and on values written before it.

    What other work on the machine adds counts in the variant's favour. So of steps alone the
    shortest counts of a variant, and the usual of the baseline; of all others the shortest.
    """

    block_s: float
    alone_s: float
    same_s: float
    new_s: float
    """The same values are written again, or values that it never had; 0 where it was not taken."""

    @property
    def more_alone_s(self) -> float:
        return self.alone_s - self.block_s

    @property
    def more_on_new_s(self) -> float:
        return self.new_s - self.same_s


@dataclass(frozen=True)
class TimedBuild:
    """One candidate, its build with steps that wait, and `fresh` values that these never had."""

    candidate: Candidate
    build: Build
    inputs: Sequence[torch.Tensor]
    fresh: Sequence[Sequence[torch.Tensor]]
    is_baseline: bool


def suspicion(
    variant: Candidate,
    ours: StepTimes,
    baseline: Candidate,
    theirs: StepTimes,
    *,
    learns: bool,
) -> Finding | None:
    """Return what is suspicious about a variant's times beside the baseline's; `learns`: they are
    of a processor that predicts branches.
    """
    name = variant.variant.name
    own, base = variant.items, baseline.items
    if _is_lost(
        (ours.block_s / own, ours.more_alone_s / own),
        (theirs.block_s / base, theirs.more_alone_s / base),
    ):
        ratios = {"ratio": ours.alone_s / ours.block_s, "baseline": theirs.alone_s / theirs.block_s}
        return computes_when_waited_for(name, **ratios)
    if not (ours.same_s and theirs.same_s):
        return None
    is_little = ours.more_on_new_s < _LEARNED_S
    if learns and is_little and ours.new_s < _LEARNED * ours.same_s:
        return None  # a smaller speedup on new values is a doubt, with its interval
    if _is_lost(
        (ours.same_s / own, ours.more_on_new_s / own),
        (theirs.same_s / base, theirs.more_on_new_s / base),
    ):
        ratios = {"ratio": ours.new_s / ours.same_s, "baseline": theirs.new_s / theirs.same_s}
        return remembers_its_inputs(name, **ratios)
    return None


def _is_lost(ours: tuple[float, float], theirs: tuple[float, float]) -> bool:
    """Return whether what a variant gains in usual steps is missing in others.

    Each is the time of a usual step, and how much more another one takes. Of two honest steps of
    10 us one took 2.4 times as long after a pause, the other twice.
    """
    own_s, own_more_s = ours
    base_s, base_more_s = theirs
    gain_s = base_s - own_s
    if gain_s < _LEAST_GAIN * base_s:
        return False
    base_more_s = max(0.0, base_more_s)
    missing_s = own_more_s - base_more_s
    longer = (1 + own_more_s / own_s) / (1 + base_more_s / base_s)
    if missing_s > _COLD_S:
        return missing_s > _GAIN_SHARE * gain_s and longer > _LONGER
    return missing_s > _COLD_GAIN_SHARE * gain_s and longer > _LONGER_IF_COLD


def lost_on_new(ours: StepTimes, theirs: StepTimes) -> float | None:
    """The variant's speedup on the same values over that on new ones; None where either is
    unknown.
    """
    if not (ours.same_s and theirs.same_s and ours.new_s and theirs.new_s):
        return None
    return (theirs.same_s / ours.same_s) / (theirs.new_s / ours.new_s)


def pause(draw: random.Random) -> float:
    """Seconds; one for all that is compared: a step after a shorter one may be the shortest."""
    low, high = _PAUSES_S
    return float(low * (high / low) ** draw.random())


def repeats_of(attempt: int, *candidates: Candidate) -> int:
    """Return how often all is taken, the more the more often it was suspicious."""
    step_s = sum(candidate.step_s for candidate in candidates)
    repeats = max(1, min(_REPEATS, int(_MOST_S / (step_s * _STEPS))))
    return max(repeats, _CONFIRMING * attempt)


def take(
    builder: Builder, clocks: Clocks, subjects: Sequence[TimedBuild], repeats: int, pause_s: float
) -> list[StepTimes]:
    """Measure every subject, interleaved."""
    blocks: list[list[float]] = [[] for _ in subjects]
    alone: list[list[float]] = [[] for _ in subjects]
    for _ in range(repeats):
        for place, subject in enumerate(subjects):
            candidate = subject.candidate
            block = clocks[0].block(
                subject.build, candidate.steps, lead_in=min(1, candidate.lead_in)
            )
            clocks[0].forget()
            blocks[place].append(block.time_s)
            alone[place].append(_alone_s(clocks, subject, block.time_s, pause_s))
    taken: list[StepTimes] = []
    for subject, in_blocks, paused in zip(subjects, blocks, alone, strict=True):
        same_s = new_s = 0.0
        with suppress(RuntimeError, ValueError, IndexError):  # also no memory for copies
            same_s, new_s = _time_new_values(builder, subject)
        alone_s = median(paused) if subject.is_baseline else min(paused)
        taken.append(StepTimes(min(in_blocks), alone_s, same_s, new_s))
    return taken


def waiting(build: Build, own: Own) -> Build:
    """The same build; where steps return before they are done, with steps that wait: several would
    be on their way in a block, and one alone shows what that hides.
    """
    if not own.asynchronous:
        return build
    step = build.work.step

    def waiting_step() -> object:
        returned = step()
        wait_for(returned)
        return returned

    waits = copy.copy(build)
    waits.work = replace(build.work, step=waiting_step)
    return waits


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


def _time_new_values(builder: Builder, subject: TimedBuild) -> tuple[float, float]:
    """Seconds of the shortest steps, each after all values were written: the same ones, and each of
    the fresh ones; 0 where there are none.
    """
    if not subject.fresh:
        return 0.0, 0.0
    build = subject.build
    inputs = subject.inputs
    usual = tensors.kept(inputs)

    def step_on(values: Sequence[torch.Tensor]) -> float:
        tensors.put_back(inputs, values)
        builder.wait()
        started = perf_counter()
        wait_for(call_each((build.work.step,)))
        builder.wait()
        return perf_counter() - started

    try:
        build.restore()
        with build.context():
            mark_step()
            step_on(usual)
            same_s = min(step_on(usual) for _ in subject.fresh)
            return same_s, min(map(step_on, subject.fresh))
    finally:
        builder.wait()
        tensors.put_back(inputs, usual)
        build.restore()
        builder.wait()
