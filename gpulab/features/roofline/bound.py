"""What limits a step: its place below the ceilings, and the evidence for the cause.

Nothing is guessed: a cause is named where a measurement shows that it takes the time. Where none
does, the step is unexplained. Everything is judged three times, at the medians of times and roofs
and at both ends of their intervals: where the answers differ, the bound is unsure.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from gpulab.core.finding import Finding, Value
from gpulab.core.payloads import LINKS, MEMORY, Ceiling, family
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.evidence import (
    OVER,
    End,
    HostCosts,
    RoofShares,
    above,
    attainable_below,
    share_of,
)
from gpulab.features.roofline.evidence import StepFacts as StepFacts

NEAR = 0.6
"""A step is bound by a roof this near; where none is, something else limits it."""
_WAITING, _WAITING_FOR_ONE = 0.2, 0.5
"""A share of waiting that limits the step; one operation alone cannot be made fewer."""
_PART, _LEAST = 1 / 3, 0.2
"""What takes this part of the way to the roof, and this share of the step, explains it."""
_STRIDED = 0.5
_MOST_OF_IT = 0.5
"""From which share of the step on what its thread does otherwise limits it."""
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
    INTERPRETER = "interpreter"
    WAITING = "waiting"
    PREEMPTED = "preempted"
    PAGE_FAULTS = "page faults"
    UNEXPLAINED = "unexplained"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Bound:
    """What limits a step, the evidence, and the `ceiling` above it; None where it declares nothing.

    `attainable` below it is in FLOP/s, or in B/s where no FLOPs are declared. `or_else` are other
    kinds that it may be within the intervals of times and roofs.
    """

    kind: BoundKind
    reason: Finding
    ceiling: Ceiling | None
    attainable: float
    or_else: tuple[BoundKind, ...] = ()


def bound_of(facts: StepFacts, roofs: RoofSet) -> Bound | None:
    """None where nothing is known: no ceiling for declared work, and no profile."""
    judge = _of_link if facts.roof in LINKS else _judged
    bounds = [judge(facts, roofs, end) for end in End]
    bound = bounds[End.MEDIAN]
    if bound is None or (
        bound.kind == BoundKind.UNKNOWN
        and bound.ceiling is None
        and "operation" not in bound.reason.values
    ):
        return None
    others = dict.fromkeys(other.kind for other in bounds if other and other.kind != bound.kind)
    return replace(bound, or_else=tuple(others))


def _judged(facts: StepFacts, roofs: RoofSet, end: End) -> Bound:
    shares = RoofShares(facts, roofs, end)
    ceiling, attainable = attainable_below(facts, shares.bandwidth, shares.units)
    near = _near_a_roof(facts, shares) if ceiling else None
    kind, code, values = near or _far_from_roofs(facts, shares, roofs, end)
    return Bound(kind, Finding(code=code, values={**shares.values, **values}), ceiling, attainable)


_Judgement = tuple[BoundKind, str, Mapping[str, Value]]
"""The bound, the code of its reason, and the values that the shares do not have."""


def _near_a_roof(facts: StepFacts, shares: RoofShares) -> _Judgement | None:
    """The roof that declared work reaches, in a cache too; None where every one is far."""
    byte_share, arithmetic = shares.bytes or 0.0, shares.arithmetic or 0.0
    if arithmetic >= byte_share and above(arithmetic, shares.units):
        return BoundKind.COMPUTE, "above_compute_roof", {}
    if NEAR <= arithmetic >= byte_share:
        return BoundKind.COMPUTE, "near_compute_roof", _capped(facts)
    if not shares.cached and (byte_share >= NEAR or shares.stream):
        as_fast: dict[str, Value] = (
            {"as_fast_as": shares.stream} if shares.stream and byte_share < NEAR else {}
        )
        if above(byte_share, shares.bandwidth):
            return BoundKind.MEMORY, "above_memory_roof", as_fast
        return BoundKind.MEMORY, "near_memory_roof", {**as_fast, **_capped(facts)}
    if shares.cached and max(byte_share, shares.memory or 0.0) >= NEAR:
        return _cached(facts, shares)
    return None


def _far_from_roofs(facts: StepFacts, shares: RoofShares, roofs: RoofSet, end: End) -> _Judgement:
    """What else takes the time, the first that is shown to."""
    costs = HostCosts.of(facts, roofs, end)
    counted = _counted_near_a_roof(facts, roofs, end) if facts.on_gpu else None
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
    phase = (
        facts.waiting_phase if facts.waiting_phase and facts.waiting_phase[1] >= _LEAST else None
    )
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


def _counted_near_a_roof(facts: StepFacts, roofs: RoofSet, end: End) -> _Judgement | None:
    """Memory or arithmetic that the device counted near their roofs, whatever is declared."""
    counted, memory = facts.counters, roofs.best(MEMORY)
    values = counted.values if counted else {}
    if facts.dram_bytes is not None and memory is not None:
        roof = (memory.median, *reversed(memory.ends))[end]
        share = facts.dram_bytes / (facts.device_s or facts.seconds) / roof
        if share >= NEAR:
            ratio = facts.dram_bytes / facts.bytes if facts.bytes else None
            return (
                BoundKind.MEMORY,
                "counted_near_memory_roof",
                {**values, "dram": min(share, 1.0), "ratio": ratio},
            )
    if counted and (pipe := counted.busiest_pipe(NEAR)):
        return BoundKind.COMPUTE, "pipe_is_busy", {**values, "pipe": pipe}
    return None


def _while_on_device(facts: StepFacts) -> _Judgement | None:
    """By what the device counted in the solo run; None where that says nothing."""
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


def _on_host(facts: StepFacts, shares: RoofShares, costs: HostCosts) -> _Judgement | None:
    """What else a CPU did: the largest part, where that explains what is lost."""
    if facts.on_gpu:
        return None
    if facts.waited is not None and facts.waited >= _MOST_OF_IT:
        return BoundKind.WAITING, "thread_waits", {"share": facts.waited}
    preempted = facts.preempted or 0.0
    running = 1 - preempted
    is_preempted = BoundKind.PREEMPTED, "thread_is_preempted", {"share": preempted}
    # it is near a roof while it runs
    if preempted >= _LEAST and shares.ideal >= NEAR * running > 0:
        return is_preempted
    name, share = costs.dominant
    if share >= max(_LEAST, _PART * (1 - min(1.0, shares.ideal / running) if running else 1.0)):
        if name == "page faults":
            return (
                BoundKind.PAGE_FAULTS,
                "page_faults_take_the_time",
                {"faults": facts.faults, "share": share},
            )
        return (
            BoundKind.LAUNCH,
            "launches_take_the_time",
            {"operations": facts.launches, "share": share},
        )
    if facts.outside is not None and facts.outside >= _MOST_OF_IT:
        return _outside_of_torch(facts)
    if facts.gathering is not None and facts.gathering >= _MOST_OF_IT:
        return BoundKind.LATENCY, "random_accesses", {"share": facts.gathering}
    if facts.strided is not None and facts.strided >= _STRIDED and facts.bytes:
        return BoundKind.LATENCY, "strided_accesses", {"share": facts.strided}
    return is_preempted if preempted >= _MOST_OF_IT else None


def _outside_of_torch(facts: StepFacts) -> _Judgement:
    values: dict[str, Value] = {"share": facts.outside}
    if facts.interpreted is None or facts.interpreted < _MOST_OF_IT:
        return (
            BoundKind.UNEXPLAINED,
            "outside_of_torch",
            {**values, "interpreted": facts.interpreted},
        )
    return (
        BoundKind.INTERPRETER,
        "interpreter_takes_the_time",
        {**values, "interpreted": facts.interpreted},
    )


def _unexplained(facts: StepFacts, shares: RoofShares, costs: HostCosts) -> _Judgement:
    longest = facts.longest_values
    if not facts.bytes and not facts.flops:
        return BoundKind.UNKNOWN, "no_work_declared", longest
    if shares.incomplete:
        return BoundKind.UNKNOWN, "ceilings_missing", {}
    counted = facts.counters.values if facts.counters else {}
    return BoundKind.UNEXPLAINED, "unexplained", {**counted, **costs.values, **longest}


def _of_link(facts: StepFacts, roofs: RoofSet, end: End) -> Bound | None:
    link = roofs.best(facts.roof or "")
    if link is None or not facts.bytes:
        return None
    share = facts.share_of(link).at(end)
    units = roofs.compute(facts.dtype) if facts.flops else None
    arithmetic = share_of(facts, facts.flops, units, end) or 0.0
    values: dict[str, Value] = {"link": facts.roof, "share": share}
    if units:
        values |= {"arithmetic": arithmetic, "dtype": facts.units}
    if arithmetic >= max(NEAR, share):
        kind, code = BoundKind.COMPUTE, "link_and_near_compute_roof"
    elif share >= NEAR:
        kind, code = BoundKind.LINK, "above_link_roof" if share > OVER else "near_link_roof"
    else:
        kind, code = BoundKind.LATENCY, "far_from_link_roof"
    return Bound(kind, Finding(code=code, values=values), link, link.median)


def _cached(facts: StepFacts, shares: RoofShares) -> _Judgement:
    memory = shares.memory or 0.0
    nearer: dict[str, Value] = (
        {"nearer_cache": True} if shares.by_cache and (shares.bytes or 0.0) > OVER else {}
    )
    if facts.dram_bytes is not None and facts.bytes and memory <= OVER:
        return (
            BoundKind.CACHE,
            "few_bytes_in_memory",
            {**nearer, "counted": facts.dram_bytes / facts.bytes},
        )
    if memory > OVER:
        maybe_fewer = facts.dram_bytes is None and (facts.bytes or 0) > facts.cache_bytes
        return (
            BoundKind.CACHE,
            "bytes_stay_in_cache",
            {**nearer, "may_move_fewer_bytes": maybe_fewer},
        )
    return BoundKind.CACHE, "bytes_fit_cache", nearer


def _capped(facts: StepFacts) -> dict[str, Value]:
    """The power, of a step that runs at the limit: its roof was measured there too."""
    counted = facts.counters
    if counted is None or not counted.at_power_cap(_AT_CAP):
        return {}
    return {name: counted.values[name] for name in ("power", "limit")}


DIFFERS = 0.2
"""Bytes that a device counted differ from the declared ones where they do by more than this."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A variant below its roof.

    `rate` is in FLOP/s, or in B/s where no FLOPs are declared; `intensity` in FLOP/byte, None where
    it has none. Both are of declared work; `bytes_counted` is what the device counted between
    itself and its memory, in a step. `fraction` is rate over attainable; `low` and `high` are the
    ends of an interval, which holds the roof's error as well as the time's. `roof_processes`: in
    how many processes the roof was measured between the blocks, `fraction` then being the median of
    what the blocks of each process give; 0 where the roof is of another time.
    """

    variant: str
    dtype: str
    unit: str
    rate: float
    rate_low: float | None = None
    rate_high: float | None = None
    intensity: float | None = None
    roof: str
    source: str
    attainable: float
    fraction: float
    fraction_low: float | None = None
    fraction_high: float | None = None
    bound: BoundKind
    or_else: list[BoundKind] = []
    """Other bounds that it may have, within the intervals of times and roofs: with any, the bound
    is unsure.
    """
    reason: Finding
    bytes_counted: float | None = None
    bytes_ratio: float | None = None
    """Counted bytes over declared ones, where they differ by more than 20 %."""
    roof_processes: int = 0

    @property
    def family(self) -> str:
        return family(self.dtype)

    @property
    def is_drawable(self) -> bool:
        """Whether it has a place below the roofs; a rate of bytes only has none."""
        return (
            self.intensity is not None
            and self.intensity > 0
            and self.rate > 0
            and self.unit == "FLOP/s"
        )


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """What limits a step, and the evidence. `or_else` are other bounds that it may have, within the
    intervals of times and roofs: with any, the bound is unsure.
    """

    bound: BoundKind
    or_else: list[BoundKind] = []
    reason: Finding


@dataclass(frozen=True)
class Roofline:
    """What is drawn: ceilings, points, and indices of the points that arrows connect."""

    ceilings: Sequence[Ceiling]
    points: Sequence[Point] = ()
    arrows: Sequence[tuple[int, int]] = ()


def point_of(variant: str, facts: StepFacts, bound: Bound | None) -> Point | None:
    """Place one variant; None where its work is not declared, or no ceiling is known for it."""
    if bound is None or bound.ceiling is None:
        return None
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    rate = amount / facts.seconds
    rate_low, rate_high = (
        amount / end_s if end_s else None for end_s in (facts.high_s, facts.low_s)
    )
    intensity = facts.flops / facts.bytes if facts.flops and facts.bytes and not on_link else None
    share = facts.share_of(bound.ceiling)
    return Point(
        variant=variant,
        dtype=facts.units,
        unit="FLOP/s" if facts.flops and not on_link else "B/s",
        rate=rate,
        rate_low=rate_low,
        rate_high=rate_high,
        intensity=intensity,
        roof=bound.ceiling.name,
        source=bound.ceiling.source,
        attainable=bound.attainable,
        fraction=share.median,
        fraction_low=share.low if share.exact else None,
        fraction_high=share.high if share.exact else None,
        bound=bound.kind,
        or_else=list(bound.or_else),
        reason=bound.reason,
        bytes_counted=facts.dram_bytes,
        bytes_ratio=None if on_link else _bytes_ratio(facts),
        roof_processes=share.processes,
    )


def _bytes_ratio(facts: StepFacts) -> float | None:
    """Bytes that were counted over those that are declared, where they are not the same."""
    ratio = facts.dram_bytes / facts.bytes if facts.dram_bytes and facts.bytes else None
    return None if ratio is None or abs(ratio - 1) <= DIFFERS else ratio
