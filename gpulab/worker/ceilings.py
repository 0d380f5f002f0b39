"""Measures the ceilings of the device that a run is on, by the lab's own clocks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import fmean
from time import perf_counter, sleep
from typing import Any

import torch

from gpulab.model.ceilings import CACHE, DERIVED, LAUNCH, LINKS, MATRIX, MEMORY, VECTOR, Ceiling, ceiling_of
from gpulab.model.events import CeilingsMeasured, Noticed, StageStarted
from gpulab.model.request import Device
from gpulab.worker import settings
from gpulab.worker.build import Build
from gpulab.worker.channel import Channel
from gpulab.worker.clock import Clock
from gpulab.worker.device import release
from gpulab.worker.device_clock import DeviceClock
from gpulab.worker.failure import out_of_memory
from gpulab.worker.ledger import Block
from gpulab.worker.probes import Planned, Probe, plan

_WHOLE_S, _PASS_S = 0.5, 0.12
"""Seconds a probe takes: of a calibration, and of one pass beside a run."""
_WARM = 0.2
_FEWEST, _MOST = 5, 2000
_TRIES = 3
_RESTS, _REST_S = 10, 0.05
_CACHED = 1.3
"""What is this much faster than memory did not come from there."""


@dataclass
class _Timed:
    """Timings of one way to a ceiling; of its probe only what they need: the data must go."""

    roof: str
    kind: str
    amount: int
    how: str
    footprint: int = 0
    times_s: list[float] = field(default_factory=list)
    sm_mhz: list[float] = field(default_factory=list)

    def ceiling(self) -> Ceiling:
        mhz = fmean(self.sm_mhz) if self.sm_mhz else None
        return ceiling_of(self.roof, self.kind, self.amount, self.times_s, how=self.how, sm_mhz=mhz)


class Calibration:
    """The ceilings of one device. Each pass adds its timings to those before, so that a machine that drifts shows.

    Made before the scenario's file is loaded: what that sets for the whole process is no property of the device.
    """

    def __init__(self, channel: Channel, device: torch.device, found: Device, wait: Callable[[], None] | None) -> None:
        self._channel, self._device, self._found, self._wait = channel, device, found, wait
        self._settings: dict[str, Any] = settings.read()
        self._timed: dict[tuple[str, str, str], _Timed] = {}
        self._short_of_memory = False

    def whole(self) -> None:
        """Everything the device has."""
        self._pass(lambda one: True, _WHOLE_S, brief=False)

    def beside_a_run(self, dtypes: Collection[str]) -> None:
        """One short pass over what work in these types can be limited by; everything on a GPU, kept for later runs."""
        if self._device.type == "cuda":
            self.whole()
        else:
            self._pass(lambda one: one.roof in (MEMORY, CACHE, LAUNCH) or one.kind in dtypes, _PASS_S, brief=True)

    def _pass(self, wanted: Callable[[Planned], bool], seconds: float, *, brief: bool) -> None:
        theirs = settings.read()
        settings.put_back(self._settings)
        try:
            self._wall = Clock(self._wait)
            self._clock = DeviceClock(self._wait, None) if self._wait else self._wall
            last = ""
            for one in plan(self._device, self._found, brief=brief):
                if wanted(one):
                    if one.roof != last:
                        last = one.roof
                        self._tell(whole=False)  # what is known so far outlives a cancelled calibration
                        self._channel.emit(StageStarted(stage="ceilings", variant=last))
                    self._take(one, seconds)
        finally:
            settings.put_back(theirs)
        self._tell(whole=not brief and not self._short_of_memory)

    def _tell(self, *, whole: bool) -> None:
        if found := self._found_so_far():
            whole = whole and all(one.steady for one in found if one.roof not in (LAUNCH, *LINKS))
            at = datetime.now(UTC).isoformat()
            held = self._held()
            self._channel.emit(CeilingsMeasured(ceilings=tuple(found), at=at, whole=whole, cache_bytes=held))

    def _take(self, one: Planned, seconds: float) -> None:
        """Measure one, or say why it cannot be: the others, and the run, go on."""
        try:
            probe = one.make()
            key = (one.roof, one.kind, probe.how)
            before = self._timed.get(key) or _Timed(one.roof, one.kind, probe.amount, probe.how, probe.footprint)
            for again in range(_TRIES):
                timed = replace(before, times_s=[*before.times_s], sm_mhz=[*before.sm_mhz])
                self._time(timed, probe, seconds * (1 + again))
                self._timed[key] = timed
                self._channel.pump()
                if timed.ceiling().steady:  # else the machine may have been disturbed just then
                    break
        except Exception as error:
            self._short_of_memory |= out_of_memory(error)
            why = (str(error) or type(error).__name__).partition("\n")[0]
            error.__traceback__ = None  # its frames hold tensors
            self._channel.emit(Noticed(text=f"the ceiling {one.roof} {one.kind} could not be measured: {why}"))
            if self._wait:
                self._wait()  # raises where the device is in error for good, and the run's next word is about that
        probe = None  # type: ignore[assignment]
        release(self._device)

    def _time(self, timed: _Timed, probe: Probe, seconds: float) -> None:
        if probe.clock == "host":
            self._time_queueing(timed, probe, seconds)
            return
        clock = self._wall if probe.clock == "wall" else self._clock
        build = Build(probe.work, 0.0, None)
        steps, _ = clock.steps_per_block(build)
        warm = perf_counter() + _WARM * seconds
        while perf_counter() < warm:
            clock.block(build, steps)
        for _ in range(_RESTS if probe.rests else 0):
            sleep(
                _REST_S
            )  # within tens of milliseconds a product reaches the power limit, and clocks fall by a quarter
            _add(timed, probe, clock.block(build, steps))
        end, count = perf_counter() + seconds, 0
        while count < _FEWEST or (perf_counter() < end and count < _MOST):
            _add(timed, probe, clock.block(build, steps))
            count += 1

    def _time_queueing(self, timed: _Timed, probe: Probe, seconds: float) -> None:
        """What the host pays to start work, with nothing before it in the queue."""
        step, wait = probe.work.step, self._wall.wait
        step()
        end, count = perf_counter() + seconds, 0
        while count < _FEWEST or (perf_counter() < end and count < _MOST):
            wait()
            started = perf_counter()
            step()
            timed.times_s.append((perf_counter() - started) / probe.parts)
            count += 1

    def _held(self) -> int | None:
        """The largest footprint that was faster than memory; None on a GPU, and where none was looked at."""
        looked = [one for one in self._timed.values() if one.roof == CACHE]
        if self._device.type == "cuda" or not looked:
            return None
        return max((one.footprint for one in looked if self._is_cached(one)), default=0)

    def _is_cached(self, of: _Timed) -> bool:
        """Whether it is clearly faster than memory in the same way; of a GPU there is no doubt."""
        memory = [one.ceiling().best for one in self._timed.values() if (one.roof, one.kind) == (MEMORY, of.kind)]
        return self._device.type == "cuda" or not memory or of.ceiling().best > _CACHED * max(memory)

    def _found_so_far(self) -> list[Ceiling]:
        """One for each roof and kind: of several footprints the best, which is the plateau."""
        best: dict[tuple[str, str], Ceiling] = {}
        for timed in self._timed.values():
            if timed.roof == CACHE and not self._is_cached(timed):
                continue
            one = timed.ceiling()
            known = best.get((one.roof, one.kind))
            if known is None or (one.steady, one.best) > (known.steady, known.best):
                best[one.roof, one.kind] = one
        found = list(best.values())
        if self._device.type == "cpu":
            found += [_vector(one) for one in found if one.roof == MATRIX and one.kind in ("fp32", "fp64")]
        return found


def _add(timed: _Timed, probe: Probe, block: Block) -> None:
    timed.times_s.append(block.time_s / probe.parts)
    timed.sm_mhz += [block.sm_mhz] if block.sm_mhz else []


def _vector(product: Ceiling) -> Ceiling:
    """A CPU multiplies matrices with its vector units: what a product reaches, any arithmetic could."""
    return Ceiling(
        roof=VECTOR,
        kind=product.kind,
        unit=product.unit,
        best=product.best,
        median=product.median,
        source=DERIVED,
        how="the matrix product's, by the same units",
    )
