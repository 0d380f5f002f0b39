"""Measures the ceilings of the device that a run is on, by the lab's own clocks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import fmean
from time import perf_counter, sleep

import torch

from gpulab.model.ceilings import (
    CACHE,
    DERIVED,
    LAUNCH,
    LINKS,
    MATRIX,
    MEMORY,
    VECTOR,
    Ceiling,
    ceiling_of,
)
from gpulab.model.events import CeilingsMeasured, Noticed, StageStarted
from gpulab.model.request import Device
from gpulab.worker.build import Build
from gpulab.worker.channel import Channel
from gpulab.worker.clock import Clock
from gpulab.worker.device import release
from gpulab.worker.device_clock import DeviceClock
from gpulab.worker.ledger import Block
from gpulab.worker.probes import Probe, probes

_WHOLE_S, _PASS_S = 0.5, 0.12
"""Seconds a probe takes: of a calibration, and of one pass beside a run."""
_WARM = 0.2
_FEWEST, _MOST = 5, 2000
_TRIES = 3
_RESTS, _REST_S = 10, 0.05


@dataclass
class _Timed:
    probe: Probe
    times_s: list[float] = field(default_factory=list)
    sm_mhz: list[float] = field(default_factory=list)

    def ceiling(self) -> Ceiling:
        probe = self.probe
        mhz = fmean(self.sm_mhz) if self.sm_mhz else None
        return ceiling_of(probe.roof, probe.kind, probe.amount, self.times_s, how=probe.how, sm_mhz=mhz)


class Calibration:
    """The ceilings of one device. Each pass adds its timings to those before, so that a machine that drifts shows."""

    def __init__(self, channel: Channel, device: torch.device, found: Device, wait: Callable[[], None] | None) -> None:
        self._channel, self._device, self._found, self._wait = channel, device, found, wait
        self._wall = Clock(wait)
        self._clock = DeviceClock(wait, None) if wait else self._wall
        self._timed: dict[tuple[str, str, str], _Timed] = {}

    def whole(self) -> None:
        """Everything the device has."""
        self._pass(lambda roof, kind: True, _WHOLE_S)

    def beside_a_run(self, dtypes: Collection[str], roof: str | None) -> None:
        """One short pass over what work in these types can be limited by; everything on a GPU, kept for later runs."""
        if self._device.type == "cuda":
            self.whole()
            return

        def wanted(of: str, kind: str) -> bool:
            if of in LINKS:
                return of == roof
            return of in (MEMORY, CACHE, LAUNCH) or kind in dtypes

        self._pass(wanted, _PASS_S, brief=True)

    def _pass(self, wanted: Callable[[str, str], bool], seconds: float, *, brief: bool = False) -> None:
        last = ""
        try:
            for probe in probes(self._device, self._found, wanted, brief=brief):
                if probe.roof != last:
                    last = probe.roof
                    self._channel.emit(StageStarted(stage="ceilings", variant=last))
                self._take(probe, seconds)
        except Exception as error:
            what = str(error).partition("\n")[0]
            self._channel.emit(Noticed(text=f"the ceiling of {last or 'the device'} could not be measured: {what}"))
        release(self._device)
        self._channel.emit(CeilingsMeasured(ceilings=tuple(self._found_so_far()), at=datetime.now(UTC).isoformat()))

    def _take(self, probe: Probe, seconds: float) -> None:
        timed = self._timed.setdefault((probe.roof, probe.kind, probe.how), _Timed(probe))
        before = len(timed.times_s)
        for again in range(_TRIES):
            del timed.times_s[before:]
            self._time(timed, probe, seconds * (1 + again))
            self._channel.pump()
            if timed.ceiling().steady:  # else the machine may have been disturbed just then
                return

    def _time(self, timed: _Timed, probe: Probe, seconds: float) -> None:
        if probe.clock == "host":
            self._time_queueing(timed, probe, seconds)
            return
        clock = self._wall if probe.clock == "wall" else self._clock
        if isinstance(clock, DeviceClock):
            clock.next_variant()
        build = Build(probe.work, 0.0, None)
        steps, _ = clock.steps_per_block(build)
        warm = perf_counter() + _WARM * seconds
        while perf_counter() < warm:
            clock.block(build, steps)
        for _ in range(_RESTS if probe.rests else 0):
            sleep(
                _REST_S
            )  # within tens of milliseconds a product reaches the power limit, and clocks fall by a quarter
            self._add(timed, clock.block(build, steps))
        end, count = perf_counter() + seconds, 0
        while count < _FEWEST or (perf_counter() < end and count < _MOST):
            self._add(timed, clock.block(build, steps))
            count += 1

    def _add(self, timed: _Timed, block: Block) -> None:
        timed.times_s.append(block.time_s / timed.probe.parts)
        timed.sm_mhz += [block.sm_mhz] if block.sm_mhz else []

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

    def _found_so_far(self) -> list[Ceiling]:
        """One for each roof and kind: of several footprints the best, which is the plateau."""
        best: dict[tuple[str, str], Ceiling] = {}
        for timed in self._timed.values():
            one = timed.ceiling()
            known = best.get((one.roof, one.kind))
            if known is None or (one.steady, one.best) > (known.steady, known.best):
                best[one.roof, one.kind] = one
        found = list(best.values())
        if self._device.type == "cpu":
            found += [_vector(one) for one in found if one.roof == MATRIX and one.kind in ("fp32", "fp64")]
        return found


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
