"""Figures of a fleet: the same variant, or the same ceiling, on every GPU of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp, pi, sqrt
from statistics import median

from gpulab.core.payloads import CACHE, LAUNCH, LINKS, MATRIX, MEMORY, VECTOR, family
from gpulab.features.fleet.reading import FileFacts, MeasuredCeiling, Timed, figures_of_ceilings
from gpulab.features.fleet.report import Resource
from gpulab.stats.statistics import Interval, median_interval

Unit = tuple[str, str]
"""(host, UUID)."""
Key = tuple[str, str, str, str, str]
"""(model, scenario, SHA-256 of its source, parameters, name)."""
_OF_CEILINGS = "ceilings"
_NEAR_MEMORY, _NEAR_ARITHMETIC = 0.6, 0.4
"""Shares of a roof from which on it is what limits."""
_FROM_CACHE = 1.1
SIGMA = 1.4826
"""Of a normal distribution, over its median absolute deviation."""
_ERROR_OF_MEDIAN = sqrt(pi / 2)
"""Of a normal distribution, over that of its mean."""
_QUANTILE = 2.576
"""Of 99 %."""
_BY_ROOF = {
    MEMORY: Resource.MEMORY,
    CACHE: Resource.COMPUTE,
    MATRIX: Resource.COMPUTE,
    VECTOR: Resource.COMPUTE,
    LAUNCH: Resource.OTHER,
} | dict.fromkeys(LINKS, Resource.LINK)


@dataclass(frozen=True)
class Value:
    """A speed of one GPU with its interval, and the clock of the SMs meanwhile."""

    speed: float
    low: float | None = None
    high: float | None = None
    mhz: float | None = None


@dataclass
class Measured:
    """One figure: its value on each GPU."""

    key: Key
    resource: Resource
    unit: str
    params: dict[str, bool | int | float | str] = field(default_factory=dict)
    values: dict[Unit, Value] = field(default_factory=dict)


Group = list[tuple[FileFacts, Timed]]


def figures_of(files: Sequence[FileFacts]) -> list[Measured]:
    """All figures of all files; of a GPU with several files their processes count together."""
    roofs = _Roofs(files)
    timed: dict[Key, dict[Unit, Group]] = {}
    ceilings: dict[Key, dict[Unit, list[MeasuredCeiling]]] = {}
    for facts in files:
        assert facts.device is not None
        params = repr(sorted(facts.params.items()))
        for name, variant in facts.variants.items():
            if variant.medians_s:
                key = (facts.device.name, facts.scenario, facts.sha256, params, name)
                timed.setdefault(key, {}).setdefault(facts.unit, []).append((facts, variant))
        for ceiling in figures_of_ceilings(facts):
            if _is_steady_kind(ceiling):
                key = (facts.device.name, _OF_CEILINGS, "", "", f"{ceiling.roof} {ceiling.kind}")
                ceilings.setdefault(key, {}).setdefault(facts.unit, []).append(ceiling)
    figures = [_timed_figure(key, groups, roofs) for key, groups in timed.items()]
    return figures + [_ceiling_figure(key, groups) for key, groups in ceilings.items()]


def _is_steady_kind(ceiling: MeasuredCeiling) -> bool:
    """Of copies only pinned ones that are long: the others measure the host."""
    if ceiling.roof not in LINKS:
        return ceiling.roof in _BY_ROOF
    return re.fullmatch("pinned [0-9]+ MiB", ceiling.kind) is not None


def _timed_figure(key: Key, groups: dict[Unit, Group], roofs: _Roofs) -> Measured:
    facts, _ = next(iter(groups.values()))[0]
    values = {unit: _value(group) for unit, group in groups.items()}
    speed = median(value.speed for value in values.values())
    built = [variant.built for group in groups.values() for _, variant in group if variant.built]
    resource = Resource.OTHER
    if facts.roof in LINKS:
        resource = Resource.LINK
    elif built:
        amounts = built[0]
        moved = None if facts.ranks > 1 and facts.roof is None else amounts.bytes
        resource = roofs.limit(key[0], moved, amounts.flops, amounts.dtype, speed)
    return Measured(key, resource, "step/s", facts.params, values)


def _value(group: Group) -> Value:
    medians = []
    mhz = []
    for _, variant in group:
        medians += variant.medians_s
        if variant.mhz:
            mhz.append(variant.mhz)
    interval = median_interval(medians)
    low = high = None
    if interval is not None:
        low = 1 / interval.high
        high = 1 / interval.low
    return Value(1 / median(medians), low, high, median(mhz) if mhz else None)


def spreads_of(files: Sequence[FileFacts]) -> dict[Key, dict[Unit, float]]:
    """How much times vary in each scenario on each GPU."""
    known: dict[Key, dict[Unit, list[float]]] = {}
    for facts in files:
        if facts.spread is None or facts.device is None:
            continue
        params = repr(sorted(facts.params.items()))
        key = (facts.device.name, facts.scenario, facts.sha256, params, "")
        known.setdefault(key, {}).setdefault(facts.unit, []).append(facts.spread)
    spreads: dict[Key, dict[Unit, float]] = {}
    for key, group in known.items():
        spreads[key] = {unit: median(values) for unit, values in group.items()}
    return spreads


def _ceiling_figure(key: Key, groups: dict[Unit, list[MeasuredCeiling]]) -> Measured:
    first = next(iter(groups.values()))[0]
    costs = first.roof == LAUNCH
    values = {}
    for unit, ceilings in groups.items():
        low = min(ceiling.ends[0] for ceiling in ceilings)
        high = max(ceiling.ends[1] for ceiling in ceilings)
        middle = median(ceiling.median for ceiling in ceilings)
        mhz = [ceiling.sm_mhz for ceiling in ceilings if ceiling.sm_mhz]
        value = Value(middle, low, high, median(mhz) if mhz else None)
        if costs:
            value = Value(1 / middle, 1 / high, 1 / low)
        values[unit] = value
    rate_unit = f"1/{first.unit}" if costs else first.unit
    return Measured(key, _BY_ROOF[first.roof], rate_unit, {}, values)


class _Roofs:
    """The median over a fleet of each ceiling, by model: what limits a variant is the same on every
    GPU of it.
    """

    def __init__(self, files: Iterable[FileFacts]) -> None:
        by_key: dict[tuple[str, str, str], list[float]] = {}
        for facts in files:
            assert facts.device is not None
            for ceiling in facts.ceilings:
                key = (facts.device.name, ceiling.roof, family(ceiling.kind))
                by_key.setdefault(key, []).append(ceiling.median)
        self._roofs = {key: median(values) for key, values in by_key.items()}

    def limit(
        self, model: str, bytes_: int | None, flops: int | None, dtype: str | None, speed: float
    ) -> Resource:
        """What limits a variant with so many steps per second."""
        if flops:
            peak = max(self._of(model, MATRIX, dtype), self._of(model, VECTOR, dtype))
            if peak and flops * speed >= _NEAR_ARITHMETIC * peak:
                return Resource.COMPUTE
        memory = max(self._all(model, MEMORY), default=0.0)
        if not bytes_ or not memory:
            return Resource.OTHER
        if bytes_ * speed > _FROM_CACHE * memory:
            return Resource.COMPUTE
        return Resource.MEMORY if bytes_ * speed >= _NEAR_MEMORY * memory else Resource.OTHER

    def _of(self, model: str, roof: str, dtype: str | None) -> float:
        return self._roofs.get((model, roof, family(dtype)), 0.0)

    def _all(self, model: str, roof: str) -> Iterator[float]:
        for (of_model, name, _), value in self._roofs.items():
            if (of_model, name) == (model, roof):
                yield value


def mad(values: Sequence[float]) -> float:
    """The median absolute deviation from the median."""
    middle = median(values)
    return median(abs(value - middle) for value in values)


def fleet_interval(values: Sequence[float]) -> Interval:
    """The median over GPUs with its 99 % interval by the MAD: the exact one of few values reaches
    to the outliers.
    """
    middle = median(values)
    error = _ERROR_OF_MEDIAN * SIGMA * mad(values) / sqrt(len(values))
    factor = exp(_QUANTILE * error / middle)
    return Interval(middle, middle / factor, middle * factor, len(values))
