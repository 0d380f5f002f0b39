"""Measures the ceilings of the device that a run is on, by the lab's own clocks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from statistics import median
from time import perf_counter, sleep
from typing import Any

import torch
from msgspec import structs

from gpulab.core.findings import Finding
from gpulab.core.machine import Device
from gpulab.core.payloads import (
    ALL_REDUCE,
    ALL_REDUCE_LATENCY,
    CACHE,
    COSTS,
    DERIVED,
    LINKS,
    MATRIX,
    MEMORY,
    RANK_LINKS,
    VECTOR,
)
from gpulab.core.statuses import Stage
from gpulab.engine.build import settings
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.device_clock import DeviceClock
from gpulab.engine.processes.device import release_memory
from gpulab.engine.processes.failure import first_line, forget, is_out_of_memory
from gpulab.engine.processes.reporting import Reporter
from gpulab.engine.ranks.links import BRIEF, SIZES, bus_bytes
from gpulab.engine.ranks.ranks import Ranks
from gpulab.engine.step_clock import Block
from gpulab.features.roofline.ceilings import ceiling_from
from gpulab.features.roofline.events import Ceiling, CeilingsMeasured
from gpulab.features.roofline.findings import between_ranks, ceiling_failed, matrix_product_units
from gpulab.features.roofline.probes import PlannedProbe, Probe, plan, size_name
from gpulab.stats.statistics import FEWEST

_LONG_S = 0.5
_BRIEF_S = 0.08
"""Seconds a probe takes: of a calibration, and of one pass beside a run."""
_MOST = 2000


@dataclass
class _Timings:
    """Timings of one way to a ceiling; of its probe only what they need: the data must go."""

    roof: str
    kind: str
    amount: int
    method: Finding
    footprint: int = 0
    times_s: list[float] = field(default_factory=list)
    sm_mhz: list[float] = field(default_factory=list)

    def ceiling(self) -> Ceiling:
        mhz = median(self.sm_mhz) if self.sm_mhz else None
        return ceiling_from(
            self.roof, self.kind, self.amount, self.times_s, method=self.method, sm_mhz=mhz
        )

    def add(self, probe: Probe, block: Block) -> None:
        self.times_s.append(block.time_s / probe.parts)
        self.sm_mhz += [block.sm_mhz] if block.sm_mhz else []


class Calibration:
    """The ceilings of one device. Each pass adds its timings to those before, so that a machine
    that drifts shows.

    Made before the scenario's file is loaded: what that sets for the whole process is no property
    of the device.
    """

    def __init__(
        self,
        reporter: Reporter,
        device: torch.device,
        info: Device,
        wait: Callable[[], None] | None,
    ) -> None:
        self._reporter = reporter
        self._device = device
        self._info = info
        self._wait = wait
        self._settings: dict[str, Any] = settings.read()
        self._timings: dict[tuple[str, str, str], _Timings] = {}
        self._short_of_memory = False

    def everything(self) -> None:
        """Every ceiling that the device has."""
        self._pass(lambda probe: True, _LONG_S, brief=False)

    def links(self, ranks: Ranks, *, roof: str | None = None, brief: bool) -> None:
        """Measure what joins the ranks: all of it, or one link."""
        backend = "NCCL" if self._device.type == "cuda" else "gloo"
        method = between_ranks(backend=backend, ranks=ranks.count)
        for link in RANK_LINKS if roof is None else (roof,):
            for size in (BRIEF[self._device.type],) if brief else SIZES[self._device.type]:
                self._reporter.stage(Stage.CEILINGS, detail=f"{link} of {size_name(size)}")
                times_s = ranks.link_times(link, size, _BRIEF_S if brief else _LONG_S)
                kind = f"{ranks.count} ranks {size_name(size)}"
                amount = int(bus_bytes(link, size, ranks.count))
                self._timings[link, kind, ""] = _Timings(link, kind, amount, method, 0, times_s)
                if size == min(SIZES[self._device.type]) and link == ALL_REDUCE:
                    self._timings[ALL_REDUCE_LATENCY, kind, ""] = _Timings(
                        ALL_REDUCE_LATENCY, kind, 0, method, 0, times_s
                    )
        self._emit(complete=False)

    def measure_for_run(self, dtypes: Collection[str], roof: str | None) -> None:
        """One short pass over what limits work in these dtypes, and the link of a scenario."""
        roofs = (MEMORY, CACHE, *COSTS, *(link for link in LINKS if link == roof))
        self._pass(lambda probe: probe.roof in roofs or probe.kind in dtypes, _BRIEF_S, brief=True)

    def _pass(self, wanted: Callable[[PlannedProbe], bool], seconds: float, *, brief: bool) -> None:
        settings_of_file = settings.read()
        settings.put_back(self._settings)
        try:
            self._wall = WallClock(self._wait)
            self._clock = DeviceClock(self._wait, None) if self._wait else self._wall
            roof = ""
            for probe in filter(wanted, plan(self._device, self._info, brief=brief)):
                if probe.roof != roof:
                    roof = probe.roof
                    # what is known so far outlives a cancelled calibration
                    self._emit(complete=False)
                    self._reporter.stage(Stage.CEILINGS, detail=roof)
                self._measure(probe, seconds, 2 if brief else 3)
        finally:
            settings.put_back(settings_of_file)
        self._emit(complete=not brief and not self._short_of_memory)

    def _emit(self, *, complete: bool) -> None:
        ceilings = self._ceilings()
        if not ceilings:
            return
        steady = all(ceiling.steady for ceiling in ceilings if ceiling.roof not in (*COSTS, *LINKS))
        self._reporter.channel.emit(
            CeilingsMeasured(
                ceilings=tuple(ceilings),
                at=datetime.now(UTC).isoformat(),
                complete=complete and steady,
                cache_bytes=self._cache_bytes(),
            )
        )

    def _measure(self, planned: PlannedProbe, seconds: float, tries: int) -> None:
        """Measure one, or say why it cannot be: the others, and the run, go on."""
        try:
            probe = planned.make()
            key = (planned.roof, planned.kind, f"{probe.method.code} {probe.method.values}")
            before = self._timings.get(key) or _Timings(
                planned.roof, planned.kind, probe.amount, probe.method, probe.footprint
            )
            for attempt in range(1, tries + 1):
                timings = replace(before, times_s=[*before.times_s], sm_mhz=[*before.sm_mhz])
                self._time(timings, probe, seconds * attempt)
                self._timings[key] = timings
                self._reporter.channel.pump()
                if timings.ceiling().steady:  # else the machine may have been disturbed just then
                    break
        except Exception as error:
            self._short_of_memory |= is_out_of_memory(error)
            message = first_line(error)
            forget(error)
            ceiling = f"{planned.roof} {planned.kind}"
            self._reporter.found(ceiling_failed(ceiling=ceiling, message=message))
            if self._wait:
                # raises where the device is in error for good, and the run's next word is about
                # that
                self._wait()
        probe = None  # type: ignore[assignment]
        release_memory(self._device)

    def _time(self, timings: _Timings, probe: Probe, seconds: float) -> None:
        clock = self._wall if probe.clock == "wall" else self._clock
        build = Build(probe.work, 0.0, None)
        if probe.clock == "host":
            probe.work.step()
            sample = partial(self._queueing, probe)
        else:
            steps, _ = clock.steps_per_block(build)
            sample = partial(clock.block, build, steps)
            warm = perf_counter() + 0.2 * seconds
            while perf_counter() < warm:
                sample()
        for _ in range(10 if probe.rests else 0):
            # Within tens of milliseconds a product reaches the power limit, and clocks fall by a
            # quarter.
            sleep(0.05)
            timings.add(probe, sample())
        end = perf_counter() + seconds
        count = 0
        while count < FEWEST or (perf_counter() < end and count < _MOST):
            timings.add(probe, sample())
            count += 1

    def _queueing(self, probe: Probe) -> Block:
        """Time what the host pays to start work, with nothing before it in the queue."""
        self._wall.wait()
        started = perf_counter()
        probe.work.step()
        ended = perf_counter()
        return Block(ended - started, 0.0, 0, 0, ended, 1)

    def _cache_bytes(self) -> int | None:
        """The largest footprint faster than memory; None on a GPU, or where none was tried."""
        footprints = [timings for timings in self._timings.values() if timings.roof == CACHE]
        if self._device.type == "cuda" or not footprints:
            return None
        cached = (timings.footprint for timings in footprints if self._is_cached(timings))
        return max(cached, default=0)

    def _is_cached(self, timings: _Timings) -> bool:
        """Return whether it is clearly faster than memory; of a GPU there is no doubt."""
        if self._device.type == "cuda":
            return True
        cached = timings.ceiling()
        memory = [
            other.ceiling()
            for other in self._timings.values()
            if (other.roof, other.kind) == (MEMORY, timings.kind)
        ]
        return all(
            cached.median > 1.3 * other.median and cached.ends[0] > other.ends[1]
            for other in memory
        )

    def _ceilings(self) -> list[Ceiling]:
        """One for each roof and kind: of several footprints the best, which is the plateau."""
        best: dict[tuple[str, str], Ceiling] = {}
        for timings in self._timings.values():
            if timings.roof == CACHE and not self._is_cached(timings):
                continue
            ceiling = timings.ceiling()
            before = best.get(ceiling.key)
            if before is None or (ceiling.steady, ceiling.median) > (before.steady, before.median):
                best[ceiling.key] = ceiling
        if self._device.type == "cuda":
            return list(best.values())
        # a CPU's products run on its vector units: any arithmetic could reach as much
        products = [best[MATRIX, kind] for kind in ("fp64", "fp32") if (MATRIX, kind) in best]
        derived = {"source": DERIVED, "spread": 0.0, "samples": 0, "method": matrix_product_units()}
        vectors = [structs.replace(product, roof=VECTOR, **derived) for product in products]
        return [*best.values(), *vectors]
