"""A fleet folded: each GPU over the median of its model by what limits, which are outliers, and
why.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from math import exp, log
from operator import or_
from statistics import median

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.features.fleet.figures import Group, Unit, groups_of, middles_of, spreads_of
from gpulab.features.fleet.findings import (
    bad_link,
    gpu_not_measured,
    low_clock,
    low_memory_clock,
    noisy_neighbour,
    slow_for_unknown_reasons,
    slow_hbm,
)
from gpulab.features.fleet.reading import FileFacts, median_of
from gpulab.features.fleet.report import GpuReport, Ratio, Resource
from gpulab.features.telemetry.events import reason_names

_LEAST = 0.03
"""A GPU that is less slower is as its maker sells it."""
_DEVIATIONS = 5.0
_SIGMA = 1.4826
"""Of a normal distribution, over its median absolute deviation."""
_LEAST_SPREAD, _TIMES_SPREAD = 0.02, 3.0
_SHARED = 0.1
"""Of the readings with another process on the GPU."""
_EXPLAINS = 0.5


class Fleet:
    """The facts of all files of one fleet."""

    def __init__(self, files: Sequence[FileFacts]) -> None:
        self._by_unit: dict[Unit, list[FileFacts]] = defaultdict(list)
        for facts in files:
            self._by_unit[facts.unit].append(facts)
        self._ratios: dict[Unit, dict[Resource, Ratio]] = defaultdict(dict)
        self._clocks: dict[tuple[Unit, Resource], tuple[float, float]] = {}
        """(MHz, the median of the model), by what limits."""
        for (_, resource), group in groups_of(files).items():
            for unit, ratio in _ratios(group).items():
                self._ratios[unit][resource] = ratio
            for unit, clocks in _clocks(group, resource).items():
                self._clocks[unit, resource] = clocks
        self._noisy: set[Unit] = set()
        self._times_spread: dict[Unit, float] = {}
        """How many times as much as on the others times vary."""
        for group in spreads_of(files).values():
            self._add_spreads(group)

    @property
    def gpus(self) -> list[GpuReport]:
        """Outliers first, then the slowest first."""
        reports = [self._gpu(unit) for unit in self._by_unit]

        def place(gpu: GpuReport) -> tuple[bool, float, str, str]:
            lowest = gpu.ratios[gpu.lowest].ratio.value if gpu.lowest else 0.0
            return not gpu.outlier, lowest, gpu.host, gpu.uuid

        return sorted(reports, key=place)

    def _add_spreads(self, group: Group) -> None:
        middles = middles_of(group)
        deviation = _SIGMA * _mad([log(middle) for middle in middles.values()])
        limit = max(_TIMES_SPREAD, exp(_DEVIATIONS * deviation))
        for unit, middle in middles.items():
            self._times_spread[unit] = middle
            if middle > limit and self._spread(unit) >= _LEAST_SPREAD:
                self._noisy.add(unit)

    def _spread(self, unit: Unit) -> float:
        spreads = [facts.spread for facts in self._by_unit[unit] if facts.spread]
        return median_of(spreads) or 0.0

    def _gpu(self, unit: Unit) -> GpuReport:
        files = self._by_unit[unit]
        ratios = self._ratios.get(unit, {})
        low = [resource for resource, ratio in ratios.items() if _is_low(ratio)]
        cause = None
        if low or unit in self._noisy:
            cause = self._cause(unit, low)
        elif not any(facts.built or facts.ceilings for facts in files):
            message = f"the run {files[-1].failure or files[-1].outcome or 'has no end'}"
            cause = gpu_not_measured(message=message)
        models = [facts.device.name for facts in files if facts.device]
        return GpuReport(
            host=unit[0],
            uuid=unit[1],
            model=models[-1] if models else "",
            files=[facts.path.name for facts in files],
            ratios=ratios,
            outlier=cause is not None,
            slowest=min(low, key=lambda resource: ratios[resource].ratio.value, default=None),
            cause=cause,
        )

    def _cause(self, unit: Unit, low: Sequence[Resource]) -> Finding:
        """Why a GPU is slow, by what else is known of it: clocks first, as they slow all the
        rest.
        """
        files = self._by_unit[unit]
        if cause := self._clock_cause(unit, low):
            return cause
        looks = [look for facts in files for look in facts.shared]
        shared = sum(looks) / len(looks) if looks else None
        if unit in self._noisy or (shared or 0.0) >= _SHARED:
            spread = self._spread(unit)
            usual = spread / self._times_spread.get(unit, 1.0)
            return noisy_neighbour(spread=spread, median_spread=usual, shared=shared)
        health = files[-1].health
        counted = [resource for resource in low if resource != Resource.OTHER]
        if counted == [Resource.MEMORY] and Resource.COMPUTE in self._ratios[unit]:
            remapped = health.get("rows_corrected", 0.0) + health.get("rows_uncorrected", 0.0)
            errors = health.get("ecc_uncorrected", 0.0)
            return slow_hbm(rows_remapped=round(remapped), ecc_errors=round(errors))
        if counted == [Resource.LINK]:
            names = ("width", "width_max", "generation", "generation_max")
            return bad_link(**{name: _whole(health.get(f"pcie_{name}")) for name in names})
        return slow_for_unknown_reasons()

    def _clock_cause(self, unit: Unit, low: Sequence[Resource]) -> Finding | None:
        """The clocks, where they explain half or more of what is lost."""
        for resource in (Resource.COMPUTE, Resource.MEMORY):
            if resource not in low or (unit, resource) not in self._clocks:
                continue
            mhz, usual = self._clocks[unit, resource]
            share = min(1.0, log(mhz / usual) / log(self._ratios[unit][resource].ratio.value))
            if share < _EXPLAINS:
                continue
            if resource == Resource.MEMORY:
                return low_memory_clock(mhz=mhz, median_mhz=usual, share=share)
            reasons = reduce(or_, (facts.reasons for facts in self._by_unit[unit]))
            return low_clock(mhz=mhz, median_mhz=usual, share=share, reasons=reason_names(reasons))
        return None


def _is_low(ratio: Ratio) -> bool:
    return ratio.ratio.value < ratio.limit and ratio.ratio.ends[1] < 1


def _ratios(group: Group) -> dict[Unit, Ratio]:
    """Return each GPU's median over its figures, with the limit of its model."""
    middles = middles_of(group)
    limit = 1 - max(_LEAST, _DEVIATIONS * _SIGMA * _mad(list(middles.values())))
    ratios = {}
    for unit, values in group.items():
        ends = [value.speed.ends for value in values if value.speed.has_interval]
        ratio = Estimate(
            value=middles[unit],
            low=median_of([low for low, _ in ends]),
            high=median_of([high for _, high in ends]),
        )
        ratios[unit] = Ratio(ratio=ratio, limit=limit)
    return ratios


def _clocks(group: Group, resource: Resource) -> dict[Unit, tuple[float, float]]:
    """(MHz, the median of the GPUs) of each GPU that has them."""
    clocks = {}
    for unit, values in group.items():
        known = [value.mhz for value in values if value.mhz and value.resource == resource]
        if known:
            clocks[unit] = median(known)
    usual = median_of(list(clocks.values())) or 0.0
    return {unit: (mhz, usual) for unit, mhz in clocks.items()}


def _mad(values: Sequence[float]) -> float:
    """The median absolute deviation from the median."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
