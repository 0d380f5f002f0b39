"""What limits a step, from evidence: its rates against the roofs, and its time against what launches cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpulab.analysis.ceilings import RoofSet
from gpulab.protocol.ceiling import CACHE, LINKS, MEMORY, Ceiling
from gpulab.protocol.finding import Finding, Value

NEAR = 0.6
"""A step is bound by a roof this near; where neither is, something else limits it."""
OVER = 1.05
"""Above this share of a roof the model is wrong: the bytes were in a cache, or other work was done than declared."""
_LAUNCHES = 0.5
_WAITING = 0.2
_FITS = 0.5
_COUNTED = 0.5
_STREAM = 0.9
_EXPLAINS = 0.5
_FAR = 0.3
_CALLS = 5
"""Bare launches that an operation of a framework costs the host, with its checks and its autograd."""
_MODULES = 10
"""And with the Python of modules around it."""


class BoundKind(StrEnum):
    MEMORY = "memory"
    COMPUTE = "compute"
    LAUNCH = "launch"
    LATENCY = "latency"
    CACHE = "cache"
    LINK = "link"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class StepFacts:
    """What is known of one step. Bytes and FLOPs are declared; the rest was measured, and None where it was not."""

    seconds: float
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    launches: int | None = None
    """Operations that the host starts in a step."""
    waiting: float | None = None
    """Share of the step in which the device waits for the host; None where the time is the device's own."""
    on_device: bool = False
    """Whether the time is by the device's clock, which has no launches in it but the gaps between them."""
    dram_bytes: float | None = None
    """What the device counted between itself and its memory."""
    cache_bytes: int = 0
    cache_seen: bool = False
    """Whether so much was seen to stay in the cache; else it is the nominal size, of which half is safe."""
    hot: bool = True
    roof: str | None = None
    """The roof that the scenario names."""
    waiting_phase: tuple[str, float] | None = None
    """The phase in which the step waits longest, and its share of the time."""

    @property
    def units(self) -> str:
        """The dtype whose arithmetic is meant."""
        return self.dtype or "fp32"


@dataclass(frozen=True)
class Bound:
    """What limits a step, the evidence, and the `ceiling` above it.

    `attainable` below it is in FLOP/s, or in B/s where no FLOPs are declared.
    """

    kind: BoundKind
    reason: Finding
    ceiling: Ceiling
    attainable: float


def bound_of(facts: StepFacts, roofs: RoofSet) -> Bound | None:
    """None where nothing is declared, or no ceiling is known that the declared work could be held against."""
    if facts.roof in LINKS:
        return _bound_of_link(facts, roofs)
    shares = _Shares(facts, roofs)
    ceiling, attainable = _attainable(facts, shares.bandwidth, shares.units)
    if ceiling is None:
        return None
    far = max(shares.bytes or 0.0, shares.arithmetic or 0.0) < _FAR and not shares.incomplete
    kind, code, values = _judged(facts, shares, _launches(facts, roofs, far=far))
    return Bound(kind, Finding(code=code, values={**shares.values, **values}), ceiling, attainable)


_Judgement = tuple[BoundKind, str, Mapping[str, Value]]
"""The bound, the code of its reason, and the values that the shares do not have."""


class _Shares:
    """How near the declared work came to each roof; 0 where none is declared, None where no ceiling is known."""

    def __init__(self, facts: StepFacts, roofs: RoofSet) -> None:
        byte_rate = facts.bytes / facts.seconds if facts.bytes else 0.0
        flop_rate = facts.flops / facts.seconds if facts.flops else 0.0
        memory, cache = roofs.best(MEMORY) if byte_rate else None, roofs.best(CACHE)
        self.units = roofs.compute(facts.dtype, facts.roof) if flop_rate else None
        self.memory, self.arithmetic = _share(byte_rate, memory), _share(flop_rate, self.units)
        self.cached = bool(byte_rate) and _in_cache(facts, self.memory or 0.0)
        self.bandwidth = cache if self.cached and cache else memory
        self.bytes = _share(byte_rate, self.bandwidth)
        # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof, far below the best.
        stream = roofs.slowest_stream()
        at_stream = stream is not None and not self.cached and byte_rate >= _STREAM * stream.median
        self.stream = stream.kind if at_stream and stream else None
        self.values = self._values(facts, roofs)

    @property
    def incomplete(self) -> bool:
        """Whether some ceiling that the work could be held against is missing."""
        return self.bytes is None or self.arithmetic is None

    @property
    def by_cache(self) -> bool:
        """Whether `bytes` is the share of the last-level cache's roof."""
        return self.bandwidth is not None and self.bandwidth.roof == CACHE

    def _values(self, facts: StepFacts, roofs: RoofSet) -> dict[str, Value]:
        values: dict[str, Value] = {"memory": self.memory} if facts.bytes else {}
        if self.cached and self.by_cache:
            values["cache"] = self.bytes
        if facts.flops:
            values |= {"arithmetic": self.arithmetic, "dtype": facts.units}
        if None in values.values():
            unsteady = any(ceiling.roof == MEMORY or ceiling.kind == facts.units for ceiling in roofs.unsteady())
            values["missing"] = "unsteady" if unsteady else "unknown"
        return values


def _judged(facts: StepFacts, shares: _Shares, launches: _Judgement | None) -> _Judgement:
    """The bound and its evidence, the first that holds."""
    byte_share, arithmetic = shares.bytes or 0.0, shares.arithmetic or 0.0
    if arithmetic > OVER and arithmetic >= byte_share:
        return BoundKind.COMPUTE, "above_compute_roof", {}
    if arithmetic >= max(NEAR, byte_share):
        return BoundKind.COMPUTE, "near_compute_roof", {}
    if not shares.cached and (byte_share >= NEAR or shares.stream):
        as_fast: dict[str, Value] = {"as_fast_as": shares.stream} if shares.stream and byte_share < NEAR else {}
        return BoundKind.MEMORY, "above_memory_roof" if byte_share > OVER else "near_memory_roof", as_fast
    if shares.cached and byte_share >= NEAR:
        return _cached(facts, shares)
    if launches:
        return launches
    if facts.waiting_phase and facts.waiting_phase[1] >= _WAITING:
        phase, share = facts.waiting_phase
        return BoundKind.LATENCY, "phase_waits", {"phase": phase, "share": share}
    if shares.cached and (shares.memory or 0.0) >= NEAR:
        return _cached(facts, shares)
    if shares.incomplete:
        return BoundKind.UNKNOWN, "ceilings_missing", {}
    if facts.waiting is not None and facts.waiting >= _WAITING:
        return BoundKind.LATENCY, "device_waits_for_host", {"share": facts.waiting}
    return BoundKind.LATENCY, "no_roof_near", {}


def _bound_of_link(facts: StepFacts, roofs: RoofSet) -> Bound | None:
    link = roofs.best(facts.roof or "")
    if link is None or not facts.bytes:
        return None
    share = facts.bytes / facts.seconds / link.best
    units = roofs.compute(facts.dtype) if facts.flops else None
    arithmetic = _share((facts.flops or 0) / facts.seconds, units) or 0.0
    values: dict[str, Value] = {"link": facts.roof, "share": share}
    if units:
        values |= {"arithmetic": arithmetic, "dtype": facts.units}
    if arithmetic >= max(NEAR, share):
        kind, code = BoundKind.COMPUTE, "link_and_near_compute_roof"
    elif share >= NEAR:
        kind, code = BoundKind.LINK, "above_link_roof" if share > OVER else "near_link_roof"
    else:
        kind, code = BoundKind.LATENCY, "far_from_link_roof"
    return Bound(kind, Finding(code=code, values=values), link, link.best)


def _in_cache(facts: StepFacts, memory_share: float) -> bool:
    """Whether a step's bytes come out of the cache: counted by the device, or too fast, or too few to leave it."""
    if facts.dram_bytes is not None and facts.bytes:
        return facts.dram_bytes < _COUNTED * facts.bytes
    fits = facts.hot and 0 < (facts.bytes or 0) <= facts.cache_bytes * (1 if facts.cache_seen else _FITS)
    return memory_share > OVER or fits


def _attainable(
    facts: StepFacts, bandwidth: Ceiling | None, arithmetic: Ceiling | None
) -> tuple[Ceiling | None, float]:
    """The lower of the two roofs at the step's intensity, in FLOP/s; in B/s where it does no FLOPs."""
    if not facts.flops:
        return bandwidth, bandwidth.best if bandwidth else 0.0
    slope = bandwidth.best * facts.flops / facts.bytes if bandwidth and facts.bytes else None
    if arithmetic is None:
        return (bandwidth, slope) if slope is not None else (None, 0.0)
    if slope is None or arithmetic.best <= slope:
        return arithmetic, arithmetic.best
    return bandwidth, slope


def _launches(facts: StepFacts, roofs: RoofSet, *, far: bool) -> _Judgement | None:
    """How launches make up the time; None where they do not. `far`: every roof is."""
    launch_s = roofs.launch_s(on_device=facts.on_device)
    share = facts.launches * launch_s / facts.seconds if launch_s and facts.launches else None
    if facts.waiting is not None:  # both clocks are known: what the device does not wait for, launches do not cost
        explained = share is None or _CALLS * share >= _EXPLAINS * facts.waiting
        waits = facts.waiting >= _WAITING and explained
        return (BoundKind.LAUNCH, "device_waits_for_launches", {"share": facts.waiting}) if waits else None
    if share and share >= _LAUNCHES:
        values: Mapping[str, Value] = {"operations": facts.launches, "share": min(share, 1.0)}
        return BoundKind.LAUNCH, "launches_take_the_time", values
    if share and not facts.on_device and far and _MODULES * share >= _LAUNCHES:
        return BoundKind.LAUNCH, "launches_and_python_take_the_time", {"operations": facts.launches, "share": share}
    return None


def _cached(facts: StepFacts, shares: _Shares) -> _Judgement:
    memory = shares.memory or 0.0
    nearer: dict[str, Value] = {"nearer_cache": True} if shares.by_cache and (shares.bytes or 0.0) > OVER else {}
    if memory > OVER:
        maybe_fewer = (facts.bytes or 0) > facts.cache_bytes
        return BoundKind.CACHE, "bytes_stay_in_cache", {**nearer, "may_move_fewer_bytes": maybe_fewer}
    if facts.dram_bytes is not None and facts.bytes:
        return BoundKind.CACHE, "few_bytes_in_memory", {**nearer, "counted": facts.dram_bytes / facts.bytes}
    return BoundKind.CACHE, "bytes_fit_cache", nearer


def _share(rate: float, ceiling: Ceiling | None) -> float | None:
    return 0.0 if not rate else rate / ceiling.best if ceiling else None
