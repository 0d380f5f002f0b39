"""What is known of one step beside its time, and how near its work came to each roof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from statistics import median

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Value
from gpulab.core.payloads import CACHE, LINKS, MEMORY
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling
from gpulab.stats.statistics import median_interval

_LEAST_RUNNING = 0.01


class End(IntEnum):
    """A value of an interval: its median, or one of its ends."""

    MEDIAN = 0
    LOW = 1
    HIGH = 2

    def of(self, median: float, low: float, high: float) -> float:
        return (median, low, high)[self]


_CAP_SHARE = 0.95
_PIPES = ("tensor", "fp64", "fp32", "fp16")


@dataclass(frozen=True)
class DeviceCounters:
    """The counts of a GPU while a variant ran alone: shares of the device's own time, and watts."""

    sm: float | None = None
    """SMs with any warp on them."""
    occupancy: float | None = None
    tensor: float | None = None
    fp64: float | None = None
    fp32: float | None = None
    fp16: float | None = None
    dram: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    capped: bool = False
    """Whether the driver said that power held the clocks back."""

    @property
    def values(self) -> dict[str, Value]:
        """All that are known, as values of a finding."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        del known["capped"]
        return {name: value for name, value in known.items() if value is not None}

    def busiest_pipe(self, least: float) -> str | None:
        """The arithmetic pipe that works for at least this share; None where none does."""
        shares = {name: getattr(self, name) or 0.0 for name in _PIPES}
        busiest = max(shares, key=lambda name: shares[name])
        return busiest if shares[busiest] >= least else None

    @property
    def at_power_cap(self) -> bool:
        """Return whether power capped the clocks, and the mean was nearly the limit."""
        if not self.capped or self.power_w is None or not self.power_limit_w:
            return False
        return self.power_w >= _CAP_SHARE * self.power_limit_w


@dataclass(frozen=True)
class StepFacts:
    """One step. Bytes and FLOPs are declared; the rest was measured, or is None."""

    time_s: Estimate
    beside: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)
    """By roof: what a step takes of it in each process, for a byte or FLOP."""
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    launches: int | None = None
    """Operations that the host starts in a step."""
    on_gpu: bool = False
    waiting: float | None = None
    """Share of the step in which the device waits for the host; None by a device clock."""
    launching: float | None = None
    """Share of the step in which it does so while the host starts operations, as recorded."""
    device_s: float | None = None
    """The device's own time of a step."""
    counters: DeviceCounters | None = None
    dram_bytes: float | None = None
    """What the device counted between itself and its memory."""
    preempted: float | None = None
    """Share of the step in which the thread of a CPU could have run, and others did."""
    waited: float | None = None
    """Share of the step in which the thread of a CPU slept, or waited for something."""
    outside: float | None = None
    """Share of the time in which the thread of a CPU runs that is in no operation of torch."""
    short_operations: float | None = None
    """Share of the step in operations that are hardly longer than starting one."""
    longest_operation: tuple[str, float] | None = None
    """The operation that takes longest, and its share of the step."""
    gathering: float | None = None
    """Share of the step in operations that read or write at indices."""
    faults: float | None = None
    """Minor page faults of a step."""
    strided: float | None = None
    """Share of the bytes of its operands that lie apart from each other."""
    cache_bytes: int = 0
    cache_seen: bool = False
    """Whether that was measured; else it is the nominal size, of which half is safe."""
    hot: bool = True
    roof: str | None = None
    """The roof that the scenario names: of the links only, all others follow from the work."""
    communicating: float | None = None
    """Share of the step in which the device communicates with others and does nothing else."""
    waiting_phase: tuple[str, float] | None = None
    """The phase in which the step waits longest, and its share of the time."""

    @property
    def units(self) -> str:
        """The dtype whose arithmetic is meant."""
        return self.dtype or "fp32"

    @property
    def counted(self) -> dict[str, Value]:
        """Return what the device counted, as values of a finding."""
        return self.counters.values if self.counters else {}

    @property
    def power_at_cap(self) -> dict[str, Value]:
        """The power, of a step that runs at the limit: its roof was measured there too."""
        if self.counters is None or not self.counters.at_power_cap:
            return {}
        return {name: self.counted[name] for name in ("power_w", "power_limit_w")}

    def share_of(self, ceiling: Ceiling) -> Share:
        """The share of a ceiling that the step reaches.

        By blocks of both in the same rounds where there are any: a machine that drifts moves both.
        """
        moves = ceiling.roof in (MEMORY, CACHE, *LINKS)
        amount = (self.bytes if moves else self.flops) or 0
        if ceiling.processes and (per_unit := self.beside.get(ceiling.key)):
            beside = [share * amount for share in per_unit]
            count = len(beside)
            if interval := median_interval(beside):
                return Share(interval.median, interval.low, interval.high, processes=count)
            return Share(median(beside), min(beside), max(beside), exact=False, processes=count)
        low, high = ceiling.ends
        fast_s, slow_s = self.time_s.ends
        share = amount / self.time_s.value / ceiling.median
        exact = self.time_s.low is not None
        return Share(share, amount / slow_s / high, amount / fast_s / low, exact=exact)


@dataclass(frozen=True)
class Share:
    """A share of a roof, between its ends: of exact intervals of the medians of the step's time and
    of the roof, or, where there are too few values for that, between the least and the most that
    was seen.
    """

    median: float
    low: float
    high: float
    exact: bool = True
    processes: int = 0
    """In which both were measured in the same rounds; 0 where they were not."""

    @property
    def estimate(self) -> Estimate:
        """Return it as it is reported: with exact ends, or none."""
        if not self.exact:
            return Estimate(value=self.median)
        return Estimate(value=self.median, low=self.low, high=self.high)

    def at(self, end: End) -> float:
        return end.of(self.median, self.low, self.high)


@dataclass(frozen=True)
class HostCosts:
    """Shares of the time in which the thread runs, None where they are not known."""

    launches: float | None = None
    """What starting as many bare operations costs, as the launch ceiling has it."""
    page_faults: float | None = None

    @classmethod
    def of(cls, facts: StepFacts, roofs: RoofSet, end: End) -> HostCosts:
        fast_s, slow_s = facts.time_s.ends
        seconds = end.of(facts.time_s.value, slow_s, fast_s)
        running = 1 - (facts.preempted or 0.0) - (facts.waited or 0.0)
        running_s = seconds * max(_LEAST_RUNNING, running)
        bare = _cost(facts.launches, roofs.launch_s(), end, running_s)
        known = [share for share in (bare, facts.short_operations) if share is not None]
        page_faults = _cost(facts.faults, roofs.fault_s(), end, running_s)
        return cls(max(known, default=None), page_faults)

    @property
    def dominant(self) -> tuple[str, float]:
        """The larger of launches and page faults, and its share."""
        launches = min(self.launches or 0.0, 1.0)
        page_faults = min(self.page_faults or 0.0, 1.0)
        return ("page faults", page_faults) if page_faults > launches else ("launch", launches)


def _cost(count: float | None, ceiling: Ceiling | None, end: End, running_s: float) -> float | None:
    """The share of a time that so many of what a ceiling is the cost of take."""
    if not count or ceiling is None:
        return None
    return count * end.of(ceiling.median, *ceiling.ends) / running_s


OVER = 1.05
"""Above this share the model is wrong: bytes came from a cache, or work was not done."""
_FITS = 0.5
_COUNTED = 0.5
_STREAM = 0.8
"""Of what the slowest stream reaches: a step as fast as that does nothing but move bytes."""


class RoofShares:
    """The share of each roof that the declared work reaches, at one end of all intervals.

    0 where none is declared, None where no ceiling is known.
    """

    def __init__(self, facts: StepFacts, roofs: RoofSet, end: End) -> None:
        memory = roofs.best(MEMORY) if facts.bytes else None
        cache = roofs.best(CACHE)
        self.units = roofs.compute(facts.dtype) if facts.flops else None
        self.memory = share_of(facts, facts.bytes, memory, end)
        self.arithmetic = share_of(facts, facts.flops, self.units, end)
        self.cached = bool(facts.bytes) and _fits_cache(facts, self.memory or 0.0)
        self.bandwidth = cache if self.cached and cache else memory
        self.bytes = share_of(facts, facts.bytes, self.bandwidth, end)
        # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof,
        # far below the best.
        self.stream: str | None = None
        stream = roofs.slowest_stream()
        if stream and not self.cached and (self.memory or 0.0) >= _STREAM * stream[1]:
            self.stream = stream[0]
        self.values = self._values(facts, roofs)

    @property
    def incomplete(self) -> bool:
        """Return whether some ceiling that the work could be held against is missing."""
        return self.bytes is None or self.arithmetic is None

    @property
    def ideal(self) -> float:
        """The share of the step that its roof accounts for."""
        return min(1.0, max(self.bytes or 0.0, self.arithmetic or 0.0))

    @property
    def by_cache(self) -> bool:
        """Return whether `bytes` is the share of the last-level cache's roof."""
        return self.bandwidth is not None and self.bandwidth.roof == CACHE

    def _values(self, facts: StepFacts, roofs: RoofSet) -> dict[str, Value]:
        values: dict[str, Value] = {"memory": self.memory} if facts.bytes else {}
        if self.cached and self.by_cache:
            values["cache"] = self.bytes
        if facts.flops:
            values |= {"arithmetic": self.arithmetic, "dtype": facts.units}
        if None in values.values():
            unsteady = any(
                ceiling.roof == MEMORY or ceiling.kind == facts.units
                for ceiling in roofs.unsteady()
            )
            values["missing"] = "unsteady" if unsteady else "unknown"
        return values


def _fits_cache(facts: StepFacts, memory_share: float) -> bool:
    """Return whether a step's bytes are the cache's: counted, too fast, or too few to leave it."""
    if facts.dram_bytes is not None and facts.bytes:
        return facts.dram_bytes < _COUNTED * facts.bytes
    holds = facts.cache_bytes * (1 if facts.cache_seen else _FITS)
    fits = facts.hot and 0 < (facts.bytes or 0) <= holds
    return memory_share > OVER or fits


def attainable_below(
    facts: StepFacts, bandwidth: Ceiling | None, arithmetic: Ceiling | None
) -> tuple[Ceiling | None, float]:
    """The lower of two roofs at the step's intensity, in FLOP/s; in B/s without FLOPs."""
    if not facts.flops:
        return bandwidth, bandwidth.median if bandwidth else 0.0
    slope = bandwidth.median * facts.flops / facts.bytes if bandwidth and facts.bytes else None
    if arithmetic is None:
        return (bandwidth, slope) if slope is not None else (None, 0.0)
    if slope is None or arithmetic.median <= slope:
        return arithmetic, arithmetic.median
    return bandwidth, slope


def above(share: float, ceiling: Ceiling | None) -> bool:
    """Return whether it is more than the roof ever reached: the declaration or ceiling is wrong."""
    return ceiling is not None and share * ceiling.median > OVER * ceiling.highest


def share_of(
    facts: StepFacts, amount: int | None, ceiling: Ceiling | None, end: End
) -> float | None:
    if not amount:
        return 0.0
    return facts.share_of(ceiling).at(end) if ceiling else None
