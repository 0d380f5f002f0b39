"""What limits a step, from evidence: its rates against the roofs, then what was counted and timed of it.

Nothing is guessed: a cause is named where a measurement shows that it takes the time. Where none does, the step is
unexplained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.evidence import HostCosts
from gpulab.analysis.evidence import StepFacts as StepFacts
from gpulab.protocol.ceiling import CACHE, LINKS, MEMORY, Ceiling
from gpulab.protocol.finding import Finding, Value

NEAR = 0.6
"""A step is bound by a roof this near; where none is, something else limits it."""
OVER = 1.05
"""Above this share of a roof the model is wrong: the bytes were in a cache, or other work was done than declared."""
_WAITING, _WAITING_FOR_ONE = 0.2, 0.5
"""From which share of waiting for the host it limits the step: one operation alone cannot be made fewer."""
_FITS = 0.5
_COUNTED = 0.5
_STREAM = 0.9
_PART, _LEAST = 1 / 3, 0.2
"""What takes this part of the time between a step and its roof, and this share of the step, explains it."""
_STRIDED = 0.5
_AT_CAP = 0.95
_RESIDENT, _FEW = 0.5, 0.25
"""Occupancy at which an SM has warps enough to hide waiting, and at which it has too few."""


class BoundKind(StrEnum):
    MEMORY = "memory"
    COMPUTE = "compute"
    POWER = "power"
    LAUNCH = "launch"
    HOST = "host"
    LATENCY = "latency"
    CACHE = "cache"
    LINK = "link"
    PREEMPTED = "preempted"
    PAGE_FAULTS = "page faults"
    UNEXPLAINED = "unexplained"
    UNKNOWN = "unknown"


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
    kind, code, values = _near_a_roof(facts, shares) or _far_from_roofs(facts, shares, roofs)
    return Bound(kind, Finding(code=code, values={**shares.values, **values}), ceiling, attainable)


_Judgement = tuple[BoundKind, str, Mapping[str, Value]]
"""The bound, the code of its reason, and the values that the shares do not have."""


class _Shares:
    """How near the declared work came to each roof; 0 where none is declared, None where no ceiling is known."""

    def __init__(self, facts: StepFacts, roofs: RoofSet) -> None:
        byte_rate = facts.bytes / facts.seconds if facts.bytes else 0.0
        flop_rate = facts.flops / facts.seconds if facts.flops else 0.0
        memory, cache = roofs.best(MEMORY) if byte_rate else None, roofs.best(CACHE)
        self.units = roofs.compute(facts.dtype) if flop_rate else None
        self.memory, self.arithmetic = _share(byte_rate, memory), _share(flop_rate, self.units)
        self.cached = bool(byte_rate) and _in_cache(facts, self.memory or 0.0)
        self.bandwidth = cache if self.cached and cache else memory
        self.bytes = _share(byte_rate, self.bandwidth)
        self.near_bytes = _may_be_near(self.bytes, self.bandwidth)
        self.near_arithmetic = _may_be_near(self.arithmetic, self.units)
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
    def ideal(self) -> float:
        """The share of the step that its roof accounts for."""
        return min(1.0, max(self.bytes or 0.0, self.arithmetic or 0.0))

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


def _near_a_roof(facts: StepFacts, shares: _Shares) -> _Judgement | None:
    """The roof that declared work reaches, or that its bytes reach in a cache; None where every one is far."""
    byte_share, arithmetic = shares.bytes or 0.0, shares.arithmetic or 0.0
    if arithmetic > OVER and arithmetic >= byte_share:
        return BoundKind.COMPUTE, "above_compute_roof", {}
    if shares.near_arithmetic and arithmetic >= byte_share:
        return BoundKind.COMPUTE, "near_compute_roof", _capped(facts)
    if not shares.cached and (shares.near_bytes or shares.stream):
        as_fast: dict[str, Value] = {"as_fast_as": shares.stream} if shares.stream and not shares.near_bytes else {}
        if byte_share > OVER:
            return BoundKind.MEMORY, "above_memory_roof", as_fast
        return BoundKind.MEMORY, "near_memory_roof", {**as_fast, **_capped(facts)}
    if shares.cached and (shares.near_bytes or (shares.memory or 0.0) >= NEAR):
        return _cached(facts, shares)
    return None


def _far_from_roofs(facts: StepFacts, shares: _Shares, roofs: RoofSet) -> _Judgement:
    """What else takes the time, the first that is shown to."""
    costs = HostCosts.of(facts, roofs)
    counted = _counted_near_a_roof(facts, roofs) if facts.on_gpu else None
    if counted and (facts.waiting or 0.0) < _WAITING_FOR_ONE:
        return counted
    return (
        _while_waiting(facts, costs)
        or counted
        or _while_on_device(facts)
        or _on_host(facts, shares, costs)
        or _unexplained(facts, shares, costs)
    )


def _while_waiting(facts: StepFacts, costs: HostCosts) -> _Judgement | None:
    """A device that does nothing for much of the step, and what the host does meanwhile."""
    phase = facts.waiting_phase if facts.waiting_phase and facts.waiting_phase[1] >= _LEAST else None
    waiting = facts.waiting or 0.0
    enough = _WAITING if (facts.launches or 0) != 1 else _WAITING_FOR_ONE
    if facts.on_gpu and waiting >= enough:
        launching = costs.launching_of_waiting(facts)
        values: dict[str, Value] = {"share": waiting, "operations": facts.launches}
        if launching is not None and launching >= 0.5 * waiting:
            return BoundKind.LAUNCH, "device_waits_for_launches", values
        if phase is None:
            return BoundKind.HOST, "device_waits_for_host", {**values, "launching": launching}
    if phase and (facts.on_gpu or phase[1] >= costs.largest):
        return BoundKind.LATENCY, "phase_waits", {"phase": phase[0], "share": phase[1]}
    return None


def _counted_near_a_roof(facts: StepFacts, roofs: RoofSet) -> _Judgement | None:
    """Memory or arithmetic that the device counted near their roofs, whatever is declared."""
    counted, memory = facts.counters, roofs.best(MEMORY)
    values = counted.values if counted else {}
    if facts.dram_bytes is not None and memory is not None:
        share = facts.dram_bytes / (facts.device_s or facts.seconds) / memory.best
        if share >= NEAR:
            ratio = facts.dram_bytes / facts.bytes if facts.bytes else None
            return BoundKind.MEMORY, "counted_near_memory_roof", {**values, "dram": min(share, 1.0), "ratio": ratio}
    if counted and (pipe := counted.busiest_pipe(NEAR)):
        return BoundKind.COMPUTE, "pipe_is_busy", {**values, "pipe": pipe}
    return None


def _while_on_device(facts: StepFacts) -> _Judgement | None:
    """By what the device counted while the variant ran alone; None where it counted nothing, or that says nothing."""
    counted = facts.counters
    if counted is None:
        return None
    values = counted.values
    if counted.at_power_cap(_AT_CAP):
        return BoundKind.POWER, "at_power_cap", values
    if counted.sm is None:
        return None
    occupancy = counted.occupancy
    if counted.sm < NEAR or (occupancy is not None and occupancy < _FEW):
        return BoundKind.LATENCY, "too_little_in_flight", values
    if occupancy is not None and occupancy >= _RESIDENT:
        return BoundKind.LATENCY, "warps_wait", values
    return None


def _on_host(facts: StepFacts, shares: _Shares, costs: HostCosts) -> _Judgement | None:
    """What a CPU was seen to do beside the work: the largest part, where that explains what is lost."""
    if facts.on_gpu:
        return None
    preempted = facts.contention or 0.0
    running = 1 - preempted
    is_preempted = BoundKind.PREEMPTED, "thread_is_preempted", {"share": preempted}
    if preempted >= _LEAST and shares.ideal >= NEAR * running:  # it is near a roof while it runs
        return is_preempted
    name, share = costs.dominant
    if share >= max(_LEAST, _PART * (1 - min(1.0, shares.ideal / running) if running else 1.0)):
        if name == "page faults":
            return BoundKind.PAGE_FAULTS, "page_faults_take_the_time", {"faults": facts.faults, "share": share}
        return BoundKind.LAUNCH, "launches_take_the_time", {"operations": facts.launches, "share": share}
    if facts.strided is not None and facts.strided >= _STRIDED and facts.bytes:
        return BoundKind.LATENCY, "strided_accesses", {"share": facts.strided}
    return is_preempted if preempted >= max(_LEAST, _PART * (1 - shares.ideal)) else None


def _unexplained(facts: StepFacts, shares: _Shares, costs: HostCosts) -> _Judgement:
    if shares.incomplete:
        return BoundKind.UNKNOWN, "ceilings_missing", {}
    counted = facts.counters.values if facts.counters else {}
    return BoundKind.UNEXPLAINED, "unexplained", {**counted, **costs.values}


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


def _cached(facts: StepFacts, shares: _Shares) -> _Judgement:
    memory = shares.memory or 0.0
    nearer: dict[str, Value] = {"nearer_cache": True} if shares.by_cache and (shares.bytes or 0.0) > OVER else {}
    if facts.dram_bytes is not None and facts.bytes and memory <= OVER:
        return BoundKind.CACHE, "few_bytes_in_memory", {**nearer, "counted": facts.dram_bytes / facts.bytes}
    if memory > OVER:
        maybe_fewer = facts.dram_bytes is None and (facts.bytes or 0) > facts.cache_bytes
        return BoundKind.CACHE, "bytes_stay_in_cache", {**nearer, "may_move_fewer_bytes": maybe_fewer}
    return BoundKind.CACHE, "bytes_fit_cache", nearer


def _capped(facts: StepFacts) -> dict[str, Value]:
    """The power, of a step that runs at the limit: its roof was measured there too."""
    counted = facts.counters
    if counted is None or not counted.at_power_cap(_AT_CAP):
        return {}
    return {name: counted.values[name] for name in ("power", "limit")}


def _share(rate: float, ceiling: Ceiling | None) -> float | None:
    return 0.0 if not rate else rate / ceiling.best if ceiling else None


def _may_be_near(share: float | None, ceiling: Ceiling | None) -> bool:
    """Whether a roof is near, as far as it is known: a machine that drifts may have had a lower one just then.

    One that was measured between the blocks drifted with them.
    """
    if share is None or ceiling is None:
        return False
    return share * (1 if ceiling.processes else ceiling.best / ceiling.ends[0]) >= NEAR
