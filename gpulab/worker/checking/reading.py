"""Reading an output, which comes after the clock: nothing of the step's work may be left to it."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import torch

from gpulab.protocol.finding import finding
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.checking import outputs
from gpulab.worker.process.errors import RefusedError

_GAINED, _MOVED, _SLACK_S = 0.2, 0.5, {"cpu": 50e-6, "cuda": 200e-6}
"""A step that gains this part of the baseline's may not spend that part of the gain on reading its output."""
_FEWEST_TRIES, _TRYING_S = 5, 0.5
"""Before it is an accusation: a machine with other users makes any one of them longer. With seven other processes on
a GPU each of five took 2 ms too long.
"""


@dataclass(frozen=True)
class ReadingTimes:
    """Seconds of a step, and of reading its output."""

    step_s: float
    read_s: float

    def __add__(self, other: ReadingTimes) -> ReadingTimes:
        """The shorter of both: what is longer was disturbed."""
        return ReadingTimes(min(self.step_s, other.step_s), min(self.read_s, other.read_s))


def timed_step(builder: Builder, build: Build) -> tuple[list[torch.Tensor], ReadingTimes]:
    """A step from restored state: its live output, and the seconds of both."""
    returned, step_s = outputs.step(builder, build)
    started = perf_counter()
    live = outputs.read(build, returned)
    builder.wait()
    return live, ReadingTimes(step_s, perf_counter() - started)


def require_quick(builder: Builder, build: Build, times: ReadingTimes, baseline: ReadingTimes) -> None:
    """RefusedError where reading the output takes much of what the step gains, however often it is tried."""
    started, tries = perf_counter(), 0
    while tries < _FEWEST_TRIES or perf_counter() - started < _TRYING_S:
        if not _takes_much(build, times, baseline, builder.device.type):
            return
        _, more = timed_step(builder, build)
        times, tries = times + more, tries + 1
    if _takes_much(build, times, baseline, builder.device.type):
        seconds = {"output_s": times.read_s, "step_s": times.step_s, "baseline_s": baseline.step_s}
        raise RefusedError(finding("output_takes_the_time", **seconds))


def _takes_much(build: Build, times: ReadingTimes, baseline: ReadingTimes, device: str) -> bool:
    gained, more = baseline.step_s - times.step_s, times.read_s - baseline.read_s
    moved = more > max(_MOVED * gained, _SLACK_S.get(device, 0.0))
    return callable(build.work.output) and gained > _GAINED * baseline.step_s and moved
