"""A CPU's roofs measured between the blocks of a run: what it could do just then."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from statistics import median
from time import perf_counter

import torch

from gpulab.core.machine import Device
from gpulab.core.payloads import CACHE, MATRIX, MEMORY
from gpulab.engine.build.build import Build
from gpulab.engine.measure.clock import WallClock
from gpulab.engine.measure.plan import lead_in_steps
from gpulab.engine.processes.failure import forget
from gpulab.features.roofline.events import RoofProbed
from gpulab.features.roofline.findings import arrays
from gpulab.features.roofline.probes import (
    PlannedProbe,
    Probe,
    array_bytes,
    products_of,
)
from gpulab.scenario import MiB, Work

_CPU = torch.device("cpu")
_PATTERN = 4096


@dataclass
class _Probing:
    """A probe that is built, and what it showed so far in this process."""

    planned: PlannedProbe
    amount: int
    build: Build
    steps: int
    lead_in: int
    cost_s: float
    times_s: list[float] = field(default_factory=list)
    ratios: dict[str, list[float]] = field(default_factory=dict)


def roof_probes(info: Device, works: Iterable[Work]) -> Iterator[PlannedProbe]:
    """The roofs that the variants' declared work is held against."""
    works = list(works)
    moved = [work.bytes for work in works if work.bytes]
    if moved:
        # there are two arrays
        array = min(max(2 * info.l2_bytes, 64 * MiB), 128 * MiB, array_bytes(_CPU, info))
        yield PlannedProbe(MEMORY, "update", partial(_walk, array, 8 * MiB))
    cached = _cached(info, works)
    if cached and _are_alike(cached):
        half = min(cached) // 2
        yield PlannedProbe(CACHE, "update", partial(_walk, half, half))
    for dtype in dict.fromkeys(work.dtype or "fp32" for work in works if work.flops):
        make = partial(products_of, _CPU, dtype, (256, 384, 512), 0.0015)
        yield PlannedProbe(MATRIX, dtype, make)


def are_all_probed(info: Device, works: Sequence[Work]) -> bool:
    """Return whether `roof_probes` has every roof that declared work is held against."""
    cached = _cached(info, works)
    return bool(works) and (not cached or _are_alike(cached))


def _cached(info: Device, works: Sequence[Work]) -> list[int]:
    """Bytes of the work that may stay in the cache."""
    return [work.bytes for work in works if work.bytes and work.bytes <= info.l2_bytes // 2]


def _are_alike(amounts: Sequence[int]) -> bool:
    """Return whether one probe, by as many bytes, stands for all of them."""
    return min(amounts) >= 4 * MiB and max(amounts) <= 2 * min(amounts)


class RoofProbes:
    """The probes of one process. They take turns with the candidates, as often as a tenth of the
    time allows.

    `after_round` at the end of each round, `events` at the end of the process. A probe that fails
    is left out.
    """

    def __init__(self, clock: WallClock, probes: Iterable[PlannedProbe], seed: int) -> None:
        self._clock = clock
        self._order = random.Random(seed)
        self._planned = list(probes)
        self._probing: list[_Probing] = []
        self._allowance_s = 0.0

    def prepare(self) -> None:
        """Build them: their data takes longer than a round."""
        self._probing = list(self._built())

    def after_round(self, times: Mapping[str, float], round_s: float) -> None:
        """Measure what the time allows, at least once; `times`: seconds per step of the round."""
        first = not any(probing.times_s for probing in self._probing)
        self._allowance_s += 0.1 * round_s  # probes take a tenth of the rounds' time
        waiting = self._order.sample(self._probing, len(self._probing))
        for probing in sorted(waiting, key=lambda probing: len(probing.times_s)):
            if first or probing.cost_s <= self._allowance_s:
                self._measure(probing, times)

    def events(self, process: int) -> Iterator[RoofProbed]:
        """Yield what was measured in this process."""
        for probing in self._probing:
            if probing.times_s:
                yield RoofProbed(
                    process=process,
                    roof=probing.planned.roof,
                    kind=probing.planned.kind,
                    amount=probing.amount,
                    time_s=median(probing.times_s),
                    blocks=len(probing.times_s),
                    ratios={name: median(ratios) for name, ratios in probing.ratios.items()},
                )

    def close(self) -> None:
        """Let their data go."""
        self._probing = []

    def _built(self) -> Iterator[_Probing]:
        # the scenario's numbers are not to depend on this
        with torch.random.fork_rng(devices=[]):
            for planned in self._planned:
                try:
                    probe = planned.make()
                    build = Build(probe.work, 0.0, None)
                    steps, step_s = self._clock.steps_per_block(build)
                except Exception as error:  # the roof of another time has to do
                    forget(error)
                    continue
                lead_in = lead_in_steps(steps, step_s)
                yield _Probing(
                    planned, probe.amount, build, steps, lead_in, (steps + lead_in) * step_s
                )

    def _measure(self, probing: _Probing, times: Mapping[str, float]) -> None:
        started = perf_counter()
        try:
            block = self._clock.block(probing.build, probing.steps, lead_in=probing.lead_in)
        except Exception as error:
            forget(error)
            self._probing = [other for other in self._probing if other is not probing]
            return
        probing.times_s.append(block.time_s)
        for name, variant_s in times.items():
            probing.ratios.setdefault(name, []).append(block.time_s / variant_s)
        probing.cost_s = perf_counter() - started
        self._allowance_s -= probing.cost_s


def _walk(array: int, chunk: int) -> Probe:
    """An update in place, chunk by chunk through an array: few bytes a step, none cached."""
    count = array // 4
    length = min(chunk, array) // 4
    data, added = (torch.rand(_PATTERN).repeat(1 + count // _PATTERN)[:count] for _ in range(2))
    places = range(0, count - length + 1, length)
    chunks = cycle(
        [(data[place : place + length], added[place : place + length]) for place in places]
    )

    def step() -> torch.Tensor:
        target, operand = next(chunks)
        return target.add_(operand, alpha=1e-6)

    return Probe(Work(step), 3 * 4 * length, arrays(bytes=array))
