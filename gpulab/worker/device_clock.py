"""The device clock: what the device itself takes, without the launches that the host makes meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import monotonic, perf_counter, thread_time_ns
from weakref import WeakKeyDictionary

import torch

from gpulab.worker.build import Build
from gpulab.worker.clock import Clock
from gpulab.worker.compiled import mark_step
from gpulab.worker.ledger import Block

_MOST_STEPS = 500  # a queue holds about a thousand launches; a full one blocks the host, and the spin has ended
_MARGIN = 2.0
_LEAST_SPIN_S, _MOST_SPIN_S = 50e-6, 0.1
_TRIES = 5
_WAKING = 1000
_MHZ = 1e6


@dataclass
class _Queueing:
    """What is known of one build: builds are timed in turn, and what hides one says nothing of the next."""

    step_s: float = 0.0
    """Seconds to queue one step, as the last block found it: what the spin must outlast."""
    exposed: bool = False
    """Whether a step's launches cannot all be hidden: it waits for the device, or has more than a queue holds."""


class DeviceClock(Clock):
    """Events around steps that wait behind a spinning kernel until all of them are queued."""

    name = "device"

    def __init__(self, wait: Callable[[], None], flush: Callable[[], None] | None) -> None:
        self._hz = 1e9  # of the SMs, as the last spin found it
        self._queueing: WeakKeyDictionary[Build, _Queueing] = WeakKeyDictionary()
        super().__init__(wait, flush)

    def block(self, build: Build, steps: int) -> Block:
        """One block; where the queueing outlasted the spin, again with a longer one, then with fewer steps."""
        known = self._queueing.setdefault(build, _Queueing())
        steps = 1 if known.exposed else min(steps, _MOST_STEPS)
        for attempt in range(1 if known.exposed else _TRIES):
            build.restore()
            mark_step()
            with build.context():
                build.work.step()
                self.wait()
                found, covered = self._cold(build, steps, known) if self.flush else self._spun(build, steps, known)
            if covered:
                return found
            if attempt:  # a longer spin was not enough: the queue is full, and the host waits in it
                steps = max(1, steps // 4)
                known.step_s = 0.0
        known.exposed = True
        return found

    def exposes(self, build: Build) -> bool:
        """Whether the last block of a build had gaps between launches in it that no spin could hide."""
        return build in self._queueing and self._queueing[build].exposed

    def _spin(self, steps: int, known: _Queueing) -> tuple[int, float]:
        """Queue a kernel that outlasts the queueing of so many steps; its cycles, and how long it should take."""
        seconds = min(_MOST_SPIN_S, _LEAST_SPIN_S + _MARGIN * (known.step_s or 20e-6) * steps)
        cycles = int(seconds * self._hz)
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
        return cycles, seconds

    def _spun(self, build: Build, steps: int, known: _Queueing) -> tuple[Block, bool]:
        step = build.work.step
        begun, started, ended = (_event() for _ in range(3))
        torch.cuda._sleep(_WAKING)  # type: ignore[no-untyped-call]  # so that no launch lies between the events
        begun.record()
        cycles, _ = self._spin(steps, known)
        started.record()
        cpu, clock = thread_time_ns(), perf_counter()
        for _ in range(steps):
            step()
        ended.record()
        queued_s = perf_counter() - clock
        cpu = thread_time_ns() - cpu
        self.wait()
        spun_s = begun.elapsed_time(started) * 1e-3
        self._hz = cycles / spun_s
        known.step_s = queued_s / steps
        taken_s = started.elapsed_time(ended) * 1e-3 / steps
        return Block(taken_s, cpu * 1e-9 / steps, 0, 0, monotonic(), steps, self._hz / _MHZ), queued_s <= spun_s

    def _cold(self, build: Build, steps: int, known: _Queueing) -> tuple[Block, bool]:
        """Each step behind a spin and a flush of the caches; their median."""
        assert self.flush is not None
        step = build.work.step
        times, covered, cpu = [], True, thread_time_ns()
        for _ in range(steps):
            started, ended = _event(), _event()
            _, spun_s = self._spin(1, known)
            clock = perf_counter()
            self.flush()
            started.record()
            step()
            ended.record()
            queued_s = perf_counter() - clock
            self.wait()
            covered = covered and queued_s <= spun_s
            known.step_s = max(known.step_s, queued_s)
            times.append(started.elapsed_time(ended) * 1e-3)
        cpu = thread_time_ns() - cpu
        return Block(median(times), cpu * 1e-9 / steps, 0, 0, monotonic(), steps), covered

    def empty_s(self) -> float:
        started, ended = (_event() for _ in range(2))
        started.record()
        ended.record()
        self.wait()
        return float(started.elapsed_time(ended)) * 1e-3

    def crossed(self, build: Build, steps: int) -> tuple[float, float, float]:
        """(device, host, queueing) seconds of one and the same number of steps; the host's without the spin.

        The host's is at most the sum of the other two: where it is longer still, the events missed something, such
        as work on a stream that was never joined.
        """
        steps = min(steps, _MOST_STEPS)
        device_s = self.block(build, steps).time_s * steps
        build.restore()
        with build.context():
            build.work.step()
            self.wait()
            clock = perf_counter()
            for _ in range(steps):
                build.work.step()
            queued_s = perf_counter() - clock
            self.wait()
            return device_s, perf_counter() - clock, queued_s


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
