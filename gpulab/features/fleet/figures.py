"""Figures of a fleet: the same variant, or the same ceiling, on every GPU of a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from gpulab.core.estimate import Estimate
from gpulab.core.payloads import CACHE, LINKS, MATRIX, MEASURED, MEMORY, VECTOR, family
from gpulab.features.fleet.reading import FileFacts
from gpulab.features.fleet.report import Resource
from gpulab.stats.statistics import median_interval

FEWEST_GPUS = 4
"""Of a model: of three the median is one of two that agree."""
Unit = tuple[str, str]
"""(host, UUID)."""
Key = tuple[Any, ...]
"""(model, scenario, SHA-256 of its source, parameters, name)."""
_NEAR_MEMORY, _NEAR_ARITHMETIC = 0.6, 0.4
"""Shares of a roof from which on it is what limits."""
_CACHE_FACTOR = 1.1
_RESOURCES = {
    MEMORY: Resource.MEMORY,
    CACHE: Resource.COMPUTE,
    MATRIX: Resource.COMPUTE,
    VECTOR: Resource.COMPUTE,
} | dict.fromkeys(LINKS, Resource.LINK)


@dataclass(frozen=True)
class Value:
    """A speed of one file, what limits it, and the clock that it follows."""

    speed: Estimate
    resource: Resource = Resource.OTHER
    mhz: float | None = None

    def over(self, speed: float) -> Value:
        return replace(self, speed=self.speed.over(speed))


Group = dict[Unit, list[Value]]
"""Of each GPU its values, one of each figure and file, over the median of all."""
Groups = dict[tuple[str, Resource], Group]
"""By model and what limits."""


def groups_of(files: Sequence[FileFacts]) -> Groups:
    """Group the variants and ceilings that enough GPUs have."""
    return _grouped((facts, key, value) for facts in files for key, value in _values(facts))


def spreads_of(files: Sequence[FileFacts]) -> Groups:
    """Group the spread of times in each scenario, as if that were a speed."""
    return _grouped(
        (facts, (facts.device.name, *facts.subject), Value(Estimate(value=facts.spread)))
        for facts in files
        if facts.device and facts.spread
    )


def _grouped(values: Iterable[tuple[FileFacts, Key, Value]]) -> Groups:
    figures: dict[Key, Group] = defaultdict(lambda: defaultdict(list))
    for facts, figure_key, value in values:
        figures[figure_key][facts.unit].append(value)
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for key, figure in figures.items():
        if len(figure) < FEWEST_GPUS:
            continue
        usual = median(middles_of(figure).values())
        limits = Counter(value.resource for known in figure.values() for value in known)
        group = groups[key[0], limits.most_common(1)[0][0]]
        for unit, known in figure.items():
            group[unit] += [value.over(usual) for value in known]
    return groups


def middles_of(group: Group) -> dict[Unit, float]:
    """One speed of each GPU."""
    return {unit: median(value.speed.value for value in values) for unit, values in group.items()}


def _values(facts: FileFacts) -> Iterator[tuple[Key, Value]]:
    """Yield the values of all variants and ceilings of one file."""
    if facts.device is None:
        return
    model = facts.device.name
    for name, medians_s in facts.medians_s.items():
        yield (model, *facts.subject, name), _value(facts, name, medians_s)
    for ceiling in facts.own_ceilings:
        if ceiling.source == MEASURED and _is_steady_kind(ceiling.roof, ceiling.kind):
            resource = _RESOURCES[ceiling.roof]
            mhz = _mhz(facts, resource, ceiling.sm_mhz)
            low, high = ceiling.ends
            speed = Estimate(value=ceiling.median, low=low, high=high)
            yield (model, ceiling.name), Value(speed, resource, mhz)


def _is_steady_kind(roof: str, kind: str) -> bool:
    """Tell whether a ceiling is steady: of copies only long pinned ones, not the host's."""
    if roof not in LINKS:
        return roof in _RESOURCES
    return re.fullmatch("pinned [0-9]+ MiB", kind) is not None


def _value(facts: FileFacts, name: str, medians_s: Sequence[float]) -> Value:
    interval = median_interval(medians_s)
    time = interval.estimate if interval else Estimate(value=median(medians_s))
    speed = time.moved(lambda seconds: 1 / seconds)
    resource = _limit(facts, name, speed.value)
    return Value(speed, resource, _mhz(facts, resource, facts.sm_mhz.get(name)))


def _mhz(facts: FileFacts, resource: Resource, sm_mhz: float | None) -> float | None:
    if resource == Resource.MEMORY:
        return facts.telemetry_mhz.get("memory_clock")
    return sm_mhz or facts.telemetry_mhz.get("sm_clock")


def _limit(facts: FileFacts, name: str, speed: float) -> Resource:
    """Return what limits a variant with so many steps per second."""
    job = facts.job
    built = facts.built.get(name)
    if job and job.roof in LINKS:
        return Resource.LINK
    if job is None or built is None:
        return Resource.OTHER
    peak = memory = 0.0
    for ceiling in facts.ceilings:
        if ceiling.roof == MEMORY:
            memory = max(memory, ceiling.median)
        if ceiling.roof in (MATRIX, VECTOR) and family(ceiling.kind) == family(built.dtype):
            peak = max(peak, ceiling.median)
    if built.flops and peak and built.flops * speed >= _NEAR_ARITHMETIC * peak:
        return Resource.COMPUTE
    if not built.bytes or not memory or job.declares_bytes_of_link:
        return Resource.OTHER
    if built.bytes * speed > _CACHE_FACTOR * memory:
        return Resource.COMPUTE
    return Resource.MEMORY if built.bytes * speed >= _NEAR_MEMORY * memory else Resource.OTHER
