"""One row of the measurement, prepared: how many steps fill a block, and until when it has to warm
up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from gpulab.core.events import Calibrated, WarmedUp
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.plan import lead_in_steps
from gpulab.engine.measure.process_result import CandidateFacts
from gpulab.engine.processes.channel import Channel
from gpulab.scenario import Variant

_WARM_UP_S = 0.3
"""At least, of the first variant: a device's clock may have been low."""
_LATER_WARM_UP_S = 0.1
"""At least, of each other variant on a CPU."""
_MOST_WARM_UP_S = 1.2
"""Of all variants together."""


@dataclass(eq=False)
class Candidate:
    """One row of the measurement: a variant that passed its checks, or the control."""

    name: str
    variant: Variant
    items: float
    steps: int
    step_s: float
    kept: bool = False
    """Whether its build is too expensive for every epoch, and stays as long as the process."""
    build: Build | None = None

    def __post_init__(self) -> None:
        self.lead_in = lead_in_steps(self.steps, self.step_s)
        """Untimed steps before a block."""

    def fill(self, steps: int, step_s: float) -> None:
        self.steps = steps
        self.step_s = step_s
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
    """Return the facts that another process needs to know of it."""
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
    candidate = Candidate(facts.name, variant, facts.items, facts.steps, facts.step_s, facts.kept)
    candidate.lead_in = facts.lead_in
    return candidate


def calibrate(clock: WallClock, variant: Variant, build: Build) -> Candidate:
    """Find the steps that fill a block, well enough to warm up with."""
    steps, step_s = clock.steps_per_block(build)
    return Candidate(variant.name, variant, build.work.items, steps, step_s)


def warm(clock: WallClock, candidate: Candidate, build: Build) -> None:
    """Warm the caches of a process that follows another: the device is warm already. Those of a
    host's core take longest.
    """
    least_s = 0.0 if clock.waits else 0.015
    started = perf_counter()
    # a block from this length on needs no warm-up
    while candidate.block_s < 0.01:
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
    """Run blocks until their time drifts by less than 1 %, within a variant's share of the time.
    These samples are kept apart.
    """
    least_s = _least_warm_up_s(clock, first=first)
    most_s = max(least_s, _MOST_WARM_UP_S / variants)
    steps = candidate.steps
    times: list[float] = []
    started = perf_counter()
    while True:
        times.append(clock.block(build, steps).time_s)
        channel.pump()
        elapsed_s = perf_counter() - started
        third = len(times) // 3
        drift = _drift(times, third)
        seen = third > 0 or candidate.step_s > least_s
        settled = seen and elapsed_s >= least_s and drift < 0.01
        if settled or elapsed_s >= most_s:
            break
    # in the rounds both halves of a pair drift together
    drifting = not settled and drift > 0.05
    channel.emit(
        WarmedUp(variant=candidate.name, times_s=times, drift=drift, drifting=drifting, steps=steps)
    )
    if candidate.steps > 1 or times[-1] < clock.block_s:
        # A device that was idle runs several times faster by now.
        candidate.fill(*clock.steps_per_block(build))
    else:
        candidate.fill(candidate.steps, median(times[-third:] if third else times))
    channel.emit(_calibrated(clock, candidate))


def _least_warm_up_s(clock: WallClock, *, first: bool) -> float:
    if first:
        return _WARM_UP_S
    return 0.03 if clock.waits else _LATER_WARM_UP_S


def _drift(times: list[float], third: int) -> float:
    """Relative change of the median from the second to the last third; 0 of too few times."""
    if not third:
        return 0.0
    return abs(median(times[-third:]) / median(times[-2 * third : -third]) - 1)


def equalize_blocks(
    clock: WallClock, channel: Channel, candidates: Sequence[Candidate], most_s: float
) -> None:
    """Make all blocks as long as the longest, up to `most_s`, and give steps of similar length
    equally many.

    A block's first steps are slower: other variants took the caches, an allocator gave memory back.
    Of two twins, one that was disturbed while it was calibrated has fewer steps in a block, and so
    a longer time: by up to 30 % at one step against two or three.
    """
    if type(clock) is not WallClock or clock.flush or not candidates:
        return
    longest = min(max(candidate.block_s for candidate in candidates), most_s)
    for alike in _alike(candidates):
        steps = max(round(longest / alike[-1].step_s), *(candidate.steps for candidate in alike))
        lead_in = max(candidate.lead_in for candidate in alike)
        for candidate in alike:
            if (candidate.steps, candidate.lead_in) == (steps, lead_in):
                continue
            candidate.steps = steps
            candidate.lead_in = lead_in
            channel.emit(_calibrated(clock, candidate))


def _alike(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Groups of similar time per step, each ascending: split where neighbours differ most."""
    ordered = sorted(candidates, key=lambda candidate: candidate.step_s)
    # twins differ by so much where one of them was disturbed
    if len(ordered) == 1 or ordered[-1].step_s <= 2.0 * ordered[0].step_s:
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
        lead_in=candidate.lead_in,
    )
