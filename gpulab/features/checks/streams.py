"""Whether a step's work is over when the clock says so: no thread, process or stream of its own
goes on with it.

What a clock cannot see is done at the expense of whoever is timed next, or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import perf_counter, sleep

import torch

from gpulab.core.events import Examined
from gpulab.core.findings import Finding, Value
from gpulab.core.statuses import CheckKind
from gpulab.engine.build.build import Build
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.measure.clock import paced, wait_for
from gpulab.engine.processes.activity import CpuOfOthers
from gpulab.features.checks.findings import (
    busy_between_steps,
    work_after_the_step,
    work_beside_the_stream,
)

_SHARE = 0.1
"""Of a stretch's time, that may be left over: what is not timed is less than this."""
_CPU_S = 100e-6
_DEVICE_S = 30e-6
"""Left over of any stretch: a pool that puts its tools away, a wait for an idle device."""
_LOOK_S = 3e-3
_MOST_LOOK_S = 0.05
_QUIET = 0.02
_SINGLE_STEPS = 3
_TRIES = 3
_STRETCH_S = 5e-3
_MOST_S = 0.1


class Streams:
    """Looks for work that outlives a step. One per process: it knows what was going on before."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._busy = self._others_while_idle()
        """CPU seconds per second that others spent when nobody was stepping."""

    def examine(self, name: str, build: Build, steps: int, step_s: float) -> Examined:
        """Single steps, and a stretch of some milliseconds, each with a look at what goes on after
        it.

        What is seen must be seen every time: one look may have been disturbed.
        """
        busy = self._others_while_idle()
        before = self._busy
        self._busy = busy
        singles = max(1, min(_SINGLE_STEPS, int(_MOST_S / max(step_s, 1e-9))))
        many = min(steps, int(_STRETCH_S / max(step_s, 1e-9)))
        for _ in range(_TRIES):
            stretches = [self._left_over(build, 1, singles, busy)]
            if many > 1:
                stretches.append(self._left_over(build, many, 1, busy))
            reason = next(
                (reason for stretch in stretches if (reason := stretch.reason(name))), None
            )
            if reason is None:
                break
        if reason is None and busy - before > _SHARE:
            reason = busy_between_steps(name, share=busy - before)
        values: dict[str, Value] = {
            "left_over_s": max(stretch.cpu_s + stretch.device_s for stretch in stretches)
        }
        return Examined(
            variant=name,
            check=CheckKind.STREAMS,
            ok=reason is None,
            count=singles + (many > 1),
            values=values,
            reason=reason,
        )

    def _others_while_idle(self) -> float:
        """CPU seconds per second of all others while this thread sleeps, once they are quiet."""
        until = perf_counter() + _MOST_LOOK_S
        while True:
            busy = CpuOfOthers().watch(_LOOK_S) / _LOOK_S
            if busy < _QUIET or perf_counter() > until:
                return busy

    def _left_over(self, build: Build, steps: int, times: int, busy: float) -> _LeftOver:
        """Medians of some stretches: what others spent after each, how long the device went on."""
        stretches = [self._stretch(build, steps, busy) for _ in range(times)]
        return _LeftOver(
            median(stretch.time_s for stretch in stretches),
            median(stretch.cpu_s for stretch in stretches),
            median(stretch.device_s for stretch in stretches),
        )

    def _stretch(self, build: Build, steps: int, busy: float) -> _LeftOver:
        build.restore()
        mark_step()
        with build.context():
            step = build.work.step
            step = paced(step, step())
            self._wait_for_device()
            sleep(_LOOK_S)  # what the step before left over is none of this one's
            started = perf_counter()
            for _ in repeat(None, steps - 1):
                step()
            wait_for(step())
            joined_s = self._wait_for_stream() - started
            ended = self._wait_for_device()
            time_s = ended - started
            look_s = min(_MOST_LOOK_S, _LOOK_S + time_s)
            spent_s = CpuOfOthers().watch(look_s)
            return _LeftOver(time_s, max(0.0, spent_s - busy * look_s), time_s - joined_s)

    def _wait_for_stream(self) -> float:
        """Wait for the current stream, as an event of a device clock does; the time after it."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()
        return perf_counter()

    def _wait_for_device(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return perf_counter()


@dataclass(frozen=True)
class _LeftOver:
    """Of a stretch: CPU seconds of others after it; how long the device outlasted its stream."""

    time_s: float
    cpu_s: float
    device_s: float

    def reason(self, name: str) -> Finding | None:
        """Why the stretch was not over when it ended; None where it was."""
        if self.device_s > _DEVICE_S + _SHARE * self.time_s:
            host_s = self.time_s
            device_s = self.time_s - self.device_s
            return work_beside_the_stream(name, host_s=host_s, device_s=device_s)
        if self.cpu_s > _CPU_S + _SHARE * self.time_s:
            return work_after_the_step(name, left_over_s=self.cpu_s, time_s=self.time_s)
        return None
