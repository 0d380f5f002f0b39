"""One row of the measurement, prepared: how many steps fill a block, and until when it has to warm
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from time import perf_counter

from gpulab.core.events import Calibrated, WarmedUp
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.plan import lead_in_steps
from gpulab.engine.measure.process_result import CandidateFacts
from gpulab.engine.processes.channel import Channel
from gpulab.scenario import Variant

_WARM_UP_S, _LATER_WARM_UP_S, _OF_A_GPU_S, _MOST_WARM_UP_S, _DRIFT = 0.3, 0.1, 0.03, 1.2, 0.01
"""Seconds of the variant that comes first, on a device that may have slept, and of those after it,
whose clock a GPU has reached by then; at most so many of all together; what is steady.
"""
_DRIFTING = 0.05
"""What is worth saying of so short a warm-up: of rounds both halves of a pair drift alike."""
_WARM_AGAIN_S, _LONG_BLOCK_S = 0.015, 0.01
"""Of a process that follows another; a block from which on it warms itself."""
_ALIKE = 2.0
"""Times by which steps differ at most that have as many in a block; twins do where one of them was
disturbed.
"""


class Candidate:
    """One row of the measurement: a variant that passed its checks, or the control."""

    def __init__(
        self,
        name: str,
        variant: Variant,
        items: float,
        steps: int,
        step_s: float,
        *,
        kept: bool = False,
    ) -> None:
        self.name, self.variant, self.items = name, variant, items
        self.fill(steps, step_s)
        self.kept = kept
        """Whether its build is too expensive for every epoch, and stays as long as the process."""
        self.build: Build | None = None

    def fill(self, steps: int, step_s: float) -> None:
        """Steps that fill a block, and the seconds of one; the untimed ones before a block follow
        from them.
        """
        self.steps, self.step_s = steps, step_s
        self.lead_in = lead_in_steps(steps, step_s)

    @property
    def block_s(self) -> float:
        """About how long a block takes, its untimed steps not counted."""
        return self.steps * self.step_s

    @property
    def round_s(self) -> float:
        """About what it adds to a round, with the untimed steps before its block."""
        return (self.steps + self.lead_in) * self.step_s


def facts_of(candidate: Candidate) -> CandidateFacts:
    """What another process needs to know of it."""
    return CandidateFacts(
        name=candidate.name,
        variant=candidate.variant.name,
        items=candidate.items,
        steps=candidate.steps,
        step_s=candidate.step_s,
        lead_in=candidate.lead_in,
        kept=candidate.kept,
    )


def known_candidate(facts: CandidateFacts, variant: Variant) -> Candidate:
    """A candidate that an earlier process has calibrated."""
    candidate = Candidate(
        facts.name, variant, facts.items, facts.steps, facts.step_s, kept=facts.kept
    )
    candidate.lead_in = facts.lead_in
    return candidate


def calibrate(clock: WallClock, variant: Variant, build: Build) -> Candidate:
    """Find the steps that fill a block, well enough to warm up with."""
    steps, step_s = clock.steps_per_block(build)
    return Candidate(variant.name, variant, build.work.items, steps, step_s)


def warm(clock: WallClock, candidate: Candidate, build: Build) -> None:
    """Of a process that follows another: the device is warm, what is new are the caches of this
    process.

    Those of a host's core take longest.
    """
    least_s = 0.0 if clock.waits else _WARM_AGAIN_S
    started = perf_counter()
    while candidate.block_s < _LONG_BLOCK_S:
        clock.block(build, candidate.steps)
        if perf_counter() - started >= least_s:
            return


def warm_up(
    clock: WallClock,
    channel: Channel,
    candidate: Candidate,
    build: Build,
    *,
    first: bool = True,
    variants: int = 1,
) -> None:
    """Until the time drifts by less than 1 %, within a variant's share of the time. Its samples are
    kept apart.
    """
    least_s = _WARM_UP_S if first else _OF_A_GPU_S if clock.waits else _LATER_WARM_UP_S
    most_s = max(least_s, _MOST_WARM_UP_S / variants)
    times: list[float] = []
    started, steps = perf_counter(), candidate.steps
    while True:
        times.append(clock.block(build, steps).time_s)
        channel.pump()
        elapsed = perf_counter() - started
        third = len(times) // 3
        drift = (
            abs(median(times[-third:]) / median(times[-2 * third : -third]) - 1) if third else 0.0
        )
        settled = elapsed >= least_s and drift < _DRIFT and (third or candidate.step_s > least_s)
        if settled or elapsed >= most_s:
            break
    drifting = not settled and drift > _DRIFTING
    channel.emit(
        WarmedUp(variant=candidate.name, times_s=times, drift=drift, drifting=drifting, steps=steps)
    )
    if candidate.steps > 1 or times[-1] < clock.block_s:
        # A device that was idle runs several times faster by now.
        candidate.fill(*clock.steps_per_block(build))
    else:
        candidate.fill(candidate.steps, median(times[-third:] if third else times))
    channel.emit(_calibrated(clock, candidate))


def equalize_blocks(
    clock: WallClock, channel: Channel, candidates: Sequence[Candidate], most_s: float
) -> None:
    """Make all blocks as long as the longest, up to `most_s`, and give those of like steps as many
    of them.

    What the other variants leave in the caches, and what an allocator gave back, fades over a
    block's first steps. Where one of two twins was disturbed while it was calibrated, its block has
    fewer steps, and more of that is in its time: up to 30 % at one step against two or three.
    """
    if type(clock) is not WallClock or clock.flush or not candidates:
        return
    longest = min(max(candidate.block_s for candidate in candidates), most_s)
    for alike in _alike(candidates):
        steps = max(round(longest / alike[-1].step_s), *(candidate.steps for candidate in alike))
        lead_in = max(candidate.lead_in for candidate in alike)
        for candidate in alike:
            candidate.lead_in = lead_in
            if candidate.steps != steps:
                candidate.steps = steps
                channel.emit(_calibrated(clock, candidate))


def _alike(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Those of about the same time a step together, the shortest of them first: parted where they
    differ most.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.step_s)
    if len(ordered) == 1 or ordered[-1].step_s <= _ALIKE * ordered[0].step_s:
        return [ordered]
    widest = max(
        range(1, len(ordered)), key=lambda place: ordered[place].step_s / ordered[place - 1].step_s
    )
    return [*_alike(ordered[:widest]), *_alike(ordered[widest:])]


def _calibrated(clock: WallClock, candidate: Candidate) -> Calibrated:
    return Calibrated(
        variant=candidate.name,
        steps_per_block=candidate.steps,
        step_s=candidate.step_s,
        empty_block_s=clock.empty_block_s,
    )
