"""The device clock: what the device itself takes, without the launches that the host makes meanwhile."""

from __future__ import annotations

from statistics import median
from time import monotonic, perf_counter, thread_time_ns

import torch

from gpulab.worker.build import Build
from gpulab.worker.clock import Clock
from gpulab.worker.compiled import mark_step
from gpulab.worker.ledger import Block

_MOST_STEPS = 500  # a queue holds about a thousand launches; a full one blocks the host, and the spin has ended
_MARGIN = 2.0
_LEAST_SPIN_S, _MOST_SPIN_S = 50e-6, 0.1
_TRIES = 8
_MHZ = 1e6


class DeviceClock(Clock):
    """Events around steps that wait behind a spinning kernel until all of them are queued."""

    name = "device"

    def __init__(self, device: torch.device, wait: object, flush: object) -> None:
        self._device = device
        self._hz = 1e9  # of the SMs, as the last spin found it
        self._queueing_s: dict[int, float] = {}
        """Seconds to queue one step, by build: what the spin must outlast."""
        super().__init__(wait, flush)  # type: ignore[arg-type]

    def block(self, build: Build, steps: int) -> Block:
        """One block; where the queueing outlasted the spin, again with a longer one."""
        steps = min(steps, _MOST_STEPS)
        build.restore()
        mark_step()
        step = build.work.step
        with build.context():
            step()
            self.wait()
            if self.flush:
                return self._cold(step, steps)
            for attempt in range(_TRIES):
                block, covered = self._spun(build, steps)
                if covered:
                    break
                build.restore()
                if attempt:  # a longer spin was not enough: the queue is full, and the host waits in it
                    steps = max(1, steps // 4)
                    self._queueing_s.pop(id(build), None)
            return block

    def _spun(self, build: Build, steps: int) -> tuple[Block, bool]:
        step = build.work.step
        queueing_s = self._queueing_s.get(id(build), 20e-6) * steps
        cycles = int(min(_MOST_SPIN_S, _LEAST_SPIN_S + _MARGIN * queueing_s) * self._hz)
        begun, started, ended = (_event() for _ in range(3))
        begun.record()
        torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]
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
        self._queueing_s[id(build)] = queued_s / steps
        taken_s = started.elapsed_time(ended) * 1e-3 / steps
        found = Block(taken_s, cpu * 1e-9 / steps, 0, 0, monotonic(), steps, self._hz / _MHZ)
        return found, queued_s <= spun_s or spun_s >= _MOST_SPIN_S

    def _cold(self, step: object, steps: int) -> Block:
        """Each step behind a flush of the caches, which is as good as a spin."""
        assert self.flush is not None
        pairs = []
        cpu = thread_time_ns()
        for _ in range(steps):
            self.flush()
            started, ended = (_event() for _ in range(2))
            started.record()
            step()  # type: ignore[operator]
            ended.record()
            pairs.append((started, ended))
        cpu = thread_time_ns() - cpu
        self.wait()
        taken_s = median(started.elapsed_time(ended) for started, ended in pairs) * 1e-3
        return Block(taken_s, cpu * 1e-9 / steps, 0, 0, monotonic(), steps)

    def empty_s(self) -> float:
        started, ended = (_event() for _ in range(2))
        started.record()
        ended.record()
        self.wait()
        return float(started.elapsed_time(ended)) * 1e-3

    def crossed(self, build: Build, steps: int) -> tuple[float, float, float]:
        """(device, host, queueing) seconds of one and the same number of steps; the host's without the spin.

        The host's time is the longer of the other two: where it is longer still, the events missed something,
        such as work on a stream that was never joined.
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
