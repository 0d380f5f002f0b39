"""The device clock: what the device itself takes, without the launches that the host makes
meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import monotonic, perf_counter, thread_time_ns

import torch

from gpulab.core.jobs import TimedJob
from gpulab.core.machine import Device
from gpulab.core.statuses import Cache, Clock
from gpulab.engine.build.build import Build
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.measure.clock import Interruption, WallClock, calls_of
from gpulab.engine.processes.device import flusher
from gpulab.engine.step_clock import Block, call_each

# a queue holds about a thousand launches; a full one blocks the host, and the spin has ended
_MOST_STEPS = 500
_TRIES = 5


@dataclass
class _Queueing:
    """The launches of one variant: they are timed in turn, and what hides one says nothing of the
    next.
    """

    step_s: float = 0.0
    """Seconds to queue one step, as the last block showed: what the spin must outlast."""
    exposed: bool = False
    """Whether a step's launches cannot all be hidden: it waits for the device, or has more than a
    queue holds.
    """


class DeviceClock(WallClock):
    """Events around steps that wait behind a spinning kernel until all of them are queued."""

    name = "device"

    def __init__(self, wait: Callable[[], None], flush: Callable[[], None] | None) -> None:
        self._hz = 1e9  # of the SMs, as the last spin showed
        self._queueing: dict[str, _Queueing] = {}
        super().__init__(wait, flush)

    def block(
        self,
        build: Build,
        steps: int,
        *,
        lead_in: int = 1,
        restore: bool = True,
        interruption: Interruption | None = None,
    ) -> Block:
        """One block; where queueing outlasts the spin, again with a longer one, or fewer steps."""
        self.returned = None
        queueing = self._queueing.setdefault(build.variant, _Queueing())
        steps = 1 if queueing.exposed else min(steps, _MOST_STEPS)
        for attempt in range(1 if queueing.exposed else _TRIES):
            if restore:
                build.restore()
            mark_step()
            with build.context():
                call_each(repeat(build.work.step, lead_in))
                self.wait()
                if self.flush:
                    block, covered = self._cold_block(build, steps, queueing)
                else:
                    within = interruption if interruption and interruption.after < steps else None
                    block, covered = self._hot_block(build, steps, queueing, within)
            if covered:
                return block
            # it waits for the device, or has more launches than a queue holds
            if attempt and steps == 1:
                break
            if attempt:  # a longer spin was not enough: the queue is full, and the host waits in it
                steps = max(1, steps // 4)
                queueing.step_s = 0.0
        queueing.exposed = True
        return block

    def exposes(self, build: Build) -> bool:
        """Return whether a build's last block had gaps between launches that no spin hides."""
        return build.variant in self._queueing and self._queueing[build.variant].exposed

    def _spin(self, steps: int, queueing: _Queueing) -> tuple[int, float]:
        """Queue a kernel that outlasts the queueing of so many steps; its cycles, and how long it
        should take.
        """
        seconds = min(0.1, 50e-6 + 2.0 * (queueing.step_s or 20e-6) * steps)
        cycles = int(seconds * self._hz)
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
        return cycles, seconds

    def single_s(self, build: Build) -> float:
        """Seconds of the device for one step, as it comes."""
        mark_step()
        queueing = self._queueing.setdefault(build.variant, _Queueing())
        block, _ = self._hot_block(build, 1, queueing, None)
        return block.time_s

    def _hot_block(
        self, build: Build, steps: int, queueing: _Queueing, interruption: Interruption | None
    ) -> tuple[Block, bool]:
        """(the block, whether the spin outlasted the queueing)."""
        calls = calls_of(build.work.step, steps, interruption)
        spin_start, started, ended = (_event() for _ in range(3))
        # so that no launch lies between the events
        torch.cuda._sleep(1000)  # type: ignore[no-untyped-call]
        spin_start.record()
        cycles, _ = self._spin(steps, queueing)
        started.record()
        cpu = thread_time_ns()
        clock = perf_counter()
        self.returned = call_each(calls)
        ended.record()
        queued_s = perf_counter() - clock
        cpu = thread_time_ns() - cpu
        self.wait()
        spun_s = spin_start.elapsed_time(started) * 1e-3
        self._hz = cycles / spun_s
        queueing.step_s = queued_s / steps
        step_s = started.elapsed_time(ended) * 1e-3 / steps
        return Block(
            step_s, cpu * 1e-9 / steps, 0, 0, monotonic(), steps, self._hz / 1e6
        ), queued_s <= spun_s

    def _cold_block(self, build: Build, steps: int, queueing: _Queueing) -> tuple[Block, bool]:
        """Each step behind a spin and a flush of the caches; their median."""
        assert self.flush is not None
        step = build.work.step
        times = []
        covered = True
        cpu = thread_time_ns()
        for _ in range(steps):
            started = _event()
            ended = _event()
            _, spun_s = self._spin(1, queueing)
            clock = perf_counter()
            self.flush()
            started.record()
            self.returned = call_each((step,))
            ended.record()
            queued_s = perf_counter() - clock
            self.wait()
            covered = covered and queued_s <= spun_s
            queueing.step_s = max(queueing.step_s, queued_s)
            times.append(started.elapsed_time(ended) * 1e-3)
        cpu = thread_time_ns() - cpu
        return Block(median(times), cpu * 1e-9 / steps, 0, 0, monotonic(), steps), covered

    def empty_s(self) -> float:
        started, ended = (_event() for _ in range(2))
        started.record()
        ended.record()
        self.wait()
        return float(started.elapsed_time(ended)) * 1e-3

    def misses(self, build: Build, steps: int) -> tuple[float, float] | None:
        """Seconds until the device is idle and until the current stream is, of so many steps whose
        work goes on beside it; None of others.

        An event knows its own stream alone, and the spin holds back no other.
        """
        for _ in range(_TRIES):
            device_s, stream_s = self._against_stream(build, min(steps, _MOST_STEPS))
            # a wait for a device that is idle takes less than 30 us
            if device_s - stream_s <= 30e-6 + 0.1 * device_s:
                return None
        return device_s, stream_s

    def _against_stream(self, build: Build, steps: int) -> tuple[float, float]:
        build.restore()
        mark_step()
        with build.context():
            build.work.step()
            self.wait()
            clock = perf_counter()
            call_each(repeat(build.work.step, steps))
            torch.cuda.current_stream().synchronize()
            stream_s = perf_counter() - clock
            self.wait()
            return perf_counter() - clock, stream_s


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def clocks_for(
    job: TimedJob, device: torch.device, info: Device, wait: Callable[[], None] | None
) -> tuple[WallClock, WallClock | None]:
    """(the verdict's clock, the other one or None)."""
    flush = flusher(device, info.l2_bytes) if job.cache == Cache.COLD else None
    wall = WallClock(wait, flush)
    if wait is None:
        return wall, None
    device_clock = DeviceClock(wait, flush)
    return (device_clock, wall) if job.clock == Clock.DEVICE else (wall, device_clock)
