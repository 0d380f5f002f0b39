"""Variants that are timed one by one before a process builds them all; and the baseline once more after the rounds.

What one variant's build leaves in the process, another one meets. So each is the first in some process, where nothing
was built before it.
"""

from __future__ import annotations

from math import log

from gpulab.protocol.events import AloneRun, Examined
from gpulab.protocol.finding import finding
from gpulab.protocol.statuses import CheckKind, Stage
from gpulab.worker.building.build import Build
from gpulab.worker.context import WorkerContext
from gpulab.worker.process.exception_text import first_line
from gpulab.worker.process.failure import is_out_of_memory
from gpulab.worker.timing.alone import step_alone_s
from gpulab.worker.timing.candidate import Candidate, warm


class AloneTimes:
    """Of one process: seconds per step by variant, and which of them was the first."""

    def __init__(self, context: WorkerContext) -> None:
        self._context = context
        self.first: str | None = None
        self._times: dict[str, float] = {}
        self._items: dict[str, float] = {}

    @property
    def per_item_s(self) -> dict[str, float]:
        return {name: time_s / self._items[name] for name, time_s in self._times.items()}

    def build_and_time(self, candidate: Candidate) -> None:
        """Time one variant on a build of its own, which stays where builds are kept.

        What cannot be built before the others is told where it is the first.
        """
        context, variant = self._context, candidate.variant
        position, builder = context.reporter.position, context.builder
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
            self._tell(variant.name)
            stays = candidate.kept
        except BaseException as error:
            if first and not is_out_of_memory(error):
                reason = finding("fails_alone", variant.name, message=first_line(error))
                examined = Examined(variant=variant.name, check=CheckKind.ALONE, ok=False, reason=reason)
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

    def time_later(self, baseline: Candidate) -> float | None:
        """After the rounds, where the baseline was the first: log(seconds now / then)."""
        time_s, build = self._times.get(baseline.name), baseline.build
        if time_s is None:
            return None
        if self.first != baseline.name or build is None:
            self._tell(baseline.name)
            return None
        later_s = step_alone_s(self._context.clock, baseline, build)
        self._tell(baseline.name, later_s)
        return log(later_s / time_s)

    def _tell(self, name: str, later_s: float | None = None) -> None:
        context = self._context
        first, time_s = name == self.first, self._times[name]
        run = AloneRun(variant=name, process=context.number, time_s=time_s, later_s=later_s, first=first)
        context.reporter.channel.emit(run)
