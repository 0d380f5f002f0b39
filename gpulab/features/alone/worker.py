"""Variants timed by themselves: before a process builds them all, after the rounds, and for long
enough to read counters.

A build may slow or speed up another variant by what it leaves in the process. So each variant is
built first in some process.
"""

from __future__ import annotations

from math import log
from statistics import median
from time import monotonic, perf_counter

from gpulab.core.events import Examined, SoloRun
from gpulab.core.statuses import CheckKind, Stage
from gpulab.engine.build.build import Build
from gpulab.engine.measure.candidate import Candidate, warm
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.context import WorkerContext
from gpulab.engine.processes.channel import Channel
from gpulab.engine.processes.failure import first_line, is_out_of_memory
from gpulab.features.alone.events import AloneRun
from gpulab.features.alone.findings import fails_alone
from gpulab.stats.statistics import median_estimate

_ALONE_S = 0.02
_FEWEST = 3
_LONG_BLOCK_S = 0.02


def step_alone_s(clock: WallClock, candidate: Candidate, build: Build) -> float:
    """Seconds per step, the median of some blocks; of a long one the block itself."""
    times: list[float] = []
    started = perf_counter()
    fewest = 1 if candidate.block_s > _LONG_BLOCK_S else _FEWEST
    while len(times) < fewest or perf_counter() - started < _ALONE_S:
        lead_in = 1 if times else candidate.lead_in
        times.append(clock.block(build, candidate.steps, lead_in=lead_in).time_s)
    return median(times)


_SOLO_S = 1.0
_AVERAGED_S = 2.0
"""Long enough for what the driver averages over a second."""
_BLOCK_S = 0.02
_MOST_STEPS = 1 << 20


def solo_run(
    clock: WallClock, channel: Channel, candidate: Candidate, time_s: float, *, averaged: bool
) -> SoloRun:
    """Blocks back to back, at least two: a GPU's counters are read several times."""
    build = candidate.build
    assert build is not None
    step_s = clock.block(build, candidate.steps).time_s
    # In pieces of some milliseconds: the state is restored before each, and an untimed step comes
    # first.
    steps = 1 if clock.flush else max(1, min(int(_BLOCK_S / max(step_s, 1e-9)), _MOST_STEPS))
    times: list[float] = []
    longest_s = min(_AVERAGED_S if averaged else _SOLO_S, time_s)
    started = monotonic()
    while len(times) < 2 or monotonic() - started < longest_s:
        times.append(clock.block(build, steps).time_s)
        channel.pump()
    estimate = median_estimate(times)
    assert estimate is not None
    return SoloRun(
        low_s=estimate.low,
        high_s=estimate.high,
        variant=candidate.name,
        started=started,
        ended=monotonic(),
        steps=len(times) * (steps + 1),
        time_s=estimate.value,
        restored_bytes=2 * build.state_bytes * len(times),
    )


class IsolatedTimes:
    """Times of one process, each variant alone: seconds per step by variant, and which was the
    first.
    """

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self.first: str | None = None
        self._times: dict[str, float] = {}
        self._items: dict[str, float] = {}
        self._after: dict[str, float] = {}
        """Of the baseline's first build, by the variant that was stepped just before."""

    @property
    def per_item_s(self) -> dict[str, float]:
        return {name: time_s / self._items[name] for name, time_s in self._times.items()}

    def build_and_time(self, candidate: Candidate) -> None:
        """Time one variant on a build of its own, which stays where builds are kept.

        The failure of the first variant is reported: it fails without the others.
        """
        context = self._context
        variant = candidate.variant
        position = context.reporter.position
        builder = context.builder
        first = self.first is None
        self.first = self.first or variant.name
        build: Build | None = None
        stays = False
        try:
            position.move(Stage.BUILD, variant.name)
            builder.pad()
            build = builder.build(variant)
            position.move(Stage.MEASURE, variant.name)
            builder.first_step(build)
            warm(context.clock, candidate, build)
            self.time(candidate, build)
            self._emit(variant.name)
            stays = candidate.kept
        except BaseException as error:
            if first and not is_out_of_memory(error):
                reason = fails_alone(variant.name, message=first_line(error))
                examined = Examined(
                    variant=variant.name, check=CheckKind.ALONE, ok=False, reason=reason
                )
                context.reporter.channel.emit(examined)
        if stays:
            candidate.build = build
        elif build is not None:
            context.close(variant, build)

    def time(self, candidate: Candidate, build: Build) -> None:
        """Time a build while no other is there."""
        name = candidate.variant.name
        self.first = self.first or name
        self._items[name] = candidate.items
        self._times[name] = step_alone_s(self._context.clock, candidate, build)

    def time_after(self, name: str, baseline: Candidate, build: Build) -> None:
        """The baseline's first build once more, after another variant's first steps: which of them
        slows it down.
        """
        if name in self._after:
            return
        times = [self._context.clock.block(build, baseline.steps) for _ in range(_FEWEST)]
        self._after[name] = median(block.time_s for block in times)

    def time_later(self, baseline: Candidate) -> float | None:
        """After the rounds, where the baseline was the first: log(seconds now / then)."""
        time_s = self._times.get(baseline.name)
        build = baseline.build
        if time_s is None:
            return None
        if self.first != baseline.name or build is None:
            self._emit(baseline.name)
            return None
        later_s = step_alone_s(self._context.clock, baseline, build)
        self._emit(baseline.name, later_s)
        return log(later_s / time_s)

    def _emit(self, name: str, later_s: float | None = None) -> None:
        context = self._context
        first = name == self.first
        time_s = self._times[name]
        context.reporter.channel.emit(
            AloneRun(
                variant=name,
                process=context.number,
                time_s=time_s,
                later_s=later_s,
                first=first,
                after=self._after if later_s is not None else {},
            )
        )
