"""What the parts of a worker that measures share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.statuses import Shows, Stage
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.processes.channel import SampleBuffer
from gpulab.engine.processes.reporting import Reporter
from gpulab.features.checks.streams import Streams
from gpulab.features.checks.worker import Checker
from gpulab.scenario import Variant


@dataclass
class WorkerContext:
    """One job on one device: its pipe and position are in `reporter`, its builds come from
    `builder`.

    `clock` is the verdict's; `other_clock`, on a GPU, the one beside it.
    """

    job: Measure | TimeFunctions
    number: int
    """Of this process, from 0."""
    seed: int
    """Of this process."""
    device: torch.device
    wait: Callable[[], None] | None
    reporter: Reporter
    buffer: SampleBuffer
    builder: Builder
    checker: Checker
    clock: WallClock
    other_clock: WallClock | None
    streams: Streams
    with_phases: set[str] = field(default_factory=set)
    """Variants whose steps have phases."""
    checked: set[str] = field(default_factory=set)
    """Variants whose output is compared with the baseline's."""

    @property
    def exclusive(self) -> bool:
        """Whether each variant needs the device to itself."""
        return isinstance(self.job, Measure) and self.job.exclusive

    @property
    def increasing_memory(self) -> bool:
        return isinstance(self.job, Measure) and self.job.increasing_memory

    @property
    def is_final(self) -> bool:
        """Whether it is the final of a sweep, whose points may not fit into memory together."""
        return isinstance(self.job, Measure) and any(
            info.function for info in self.job.subject.variants
        )

    @property
    def one_at_a_time(self) -> bool:
        """Whether builds may not stay while another variant runs."""
        return self.exclusive or self.increasing_memory

    @property
    def shows(self) -> Shows:
        """What the scenario is to show."""
        return self.job.shows if isinstance(self.job, Measure) else Shows.SPEEDUP

    def close(self, variant: Variant, build: Build) -> None:
        """Tear a build down."""
        self.reporter.position.move(Stage.TEARDOWN, variant.name)
        try:
            build.close()
        except BaseException as error:
            self.reporter.failed(variant.name, Stage.TEARDOWN, error)

    @property
    def wall_clock(self) -> WallClock:
        if self.other_clock is not None and self.other_clock.name == "wall":
            return self.other_clock
        return self.clock
