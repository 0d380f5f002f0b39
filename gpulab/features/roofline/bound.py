"""What limits a step: its place below the ceilings, and the evidence for the cause.

Nothing is guessed: a cause is named where a measurement shows that it takes the time. Where none
does, the step is unexplained. Everything is judged three times, at the medians of times and roofs
and at both ends of their intervals: where the answers differ, the bound is unsure.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding, Value
from gpulab.core.payloads import LINKS, MEMORY, family
from gpulab.core.statuses import BoundKind
from gpulab.features.roofline import findings
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.evidence import (
    OVER,
    End,
    HostCosts,
    RoofShares,
    StepFacts,
    above,
    attainable_below,
    share_of,
)
from gpulab.features.roofline.findings import BOUND_OF

NEAR = 0.6
"""A step is bound by a roof this near; where none is, something else limits it."""
_ROOF_KINDS = frozenset({BoundKind.MEMORY, BoundKind.COMPUTE, BoundKind.CACHE, BoundKind.LINK})
_WAITING = 0.2
_WAITING_FOR_ONE = 0.5
"""A share of waiting that limits the step; one operation alone cannot be made fewer."""
_PART = 1 / 3
_LEAST = 0.2
"""What takes this part of the way to the roof, and this share of the step, explains it."""
_MOST_OF_IT = 0.5
"""From which share of the step on one thing that it does limits it."""
_RESIDENT = 0.5
_FEW = 0.25
"""Occupancy at which an SM has warps enough to hide waiting, and at which it has few."""


@dataclass(frozen=True)
class Bound:
    """The limit of a step, the evidence, and the `ceiling` above it; None where it declares
    nothing.

    `attainable` below it is in FLOP/s, or in B/s where no FLOPs are declared. `or_else` are other
    kinds that it may be within the intervals of times and roofs.
    """

    reason: Finding
    ceiling: Ceiling | None
    attainable: float
    or_else: tuple[BoundKind, ...] = ()

    @property
    def kind(self) -> BoundKind:
        return BOUND_OF[self.reason.code]


def bound_of(facts: StepFacts, roofs: RoofSet) -> Bound | None:
    """None where nothing is known: no ceiling for declared work, and no profile."""
    judge = _link_bound if facts.roof in LINKS else _judged
    bounds = [judge(facts, roofs, end) for end in End]
    bound = bounds[End.MEDIAN]
    if bound is None:
        return None
    knows = bound.ceiling is not None or "operation" in bound.reason.values
    if bound.kind == BoundKind.UNKNOWN and not knows:
        return None
    others = dict.fromkeys(other.kind for other in bounds if other and other.kind != bound.kind)
    if not _ROOF_KINDS.isdisjoint(others) and bound.kind not in _ROOF_KINDS:
        values = {**bound.reason.values, "perhaps_near": True}
        bound = replace(bound, reason=Finding(code=bound.reason.code, values=values))
    return replace(bound, or_else=tuple(others))


def _judged(facts: StepFacts, roofs: RoofSet, end: End) -> Bound:
    shares = RoofShares(facts, roofs, end)
    ceiling, attainable = attainable_below(facts, shares.bandwidth, shares.units)
    reason = _near_a_roof(facts, shares) if ceiling else None
    reason = reason or _far_from_roofs(facts, shares, roofs, end)
    reason = Finding(code=reason.code, values={**shares.values, **reason.values})
    return Bound(reason, ceiling, attainable)


def _near_a_roof(facts: StepFacts, shares: RoofShares) -> Finding | None:
    """The roof that declared work reaches, in a cache too; None where every one is far."""
    byte_share = shares.bytes or 0.0
    arithmetic = shares.arithmetic or 0.0
    if arithmetic >= byte_share and above(arithmetic, shares.units):
        return findings.above_compute_roof()
    if NEAR <= arithmetic >= byte_share:
        return findings.near_compute_roof(**facts.power_at_cap)
    if shares.cached:
        near = max(byte_share, shares.memory or 0.0) >= NEAR
        return _cached(facts, shares) if near else None
    if byte_share < NEAR and not shares.stream:
        return None
    as_fast: dict[str, Value] = {"as_fast_as": shares.stream} if byte_share < NEAR else {}
    if above(byte_share, shares.bandwidth):
        return findings.above_memory_roof.from_values(as_fast)
    return findings.near_memory_roof.from_values({**as_fast, **facts.power_at_cap})


def _cached(facts: StepFacts, shares: RoofShares) -> Finding:
    memory = shares.memory or 0.0
    nearer: dict[str, Value] = {}
    if shares.by_cache and (shares.bytes or 0.0) > OVER:
        nearer = {"nearer_cache": True}
    if facts.dram_bytes is not None and facts.bytes and memory <= OVER:
        counted = facts.dram_bytes / facts.bytes
        return findings.few_bytes_in_memory.from_values({**nearer, "counted": counted})
    if memory > OVER:
        fewer = facts.dram_bytes is None and (facts.bytes or 0) > facts.cache_bytes
        return findings.bytes_stay_in_cache.from_values({**nearer, "may_move_fewer_bytes": fewer})
    return findings.bytes_fit_cache(**nearer)


def _far_from_roofs(facts: StepFacts, shares: RoofShares, roofs: RoofSet, end: End) -> Finding:
    """Return what else takes the time, the first that is shown to."""
    costs = HostCosts.of(facts, roofs, end)
    counted = _counted_near_a_roof(facts, roofs, end) if facts.on_gpu else None
    if counted and (facts.waiting or 0.0) < _WAITING_FOR_ONE:
        return counted
    return (
        _while_waiting(facts, costs)
        or counted
        or _while_communicating(facts)
        or _while_on_device(facts)
        or _host_cause(facts, shares, costs)
        or _unexplained(facts, shares, costs)
    )


def _while_waiting(facts: StepFacts, costs: HostCosts) -> Finding | None:
    """A device that does nothing for much of the step, and what the host does meanwhile."""
    phase, phase_share = facts.waiting_phase or ("", 0.0)
    waits_in_phase = phase_share >= _LEAST
    waiting = facts.waiting or 0.0
    enough = _WAITING_FOR_ONE if facts.launches == 1 else _WAITING
    if facts.on_gpu and waiting >= enough:
        # as recorded, else at most what launches cost bare
        launching = costs.launches if facts.launching is None else facts.launching
        if launching is not None and launching >= 0.5 * waiting:
            return findings.device_waits_for_launches(share=waiting, operations=facts.launches)
        if not waits_in_phase:
            return findings.device_waits_for_host(
                share=waiting, operations=facts.launches, launching=launching
            )
    if waits_in_phase and (facts.on_gpu or phase_share >= costs.dominant[1]):
        return findings.phase_waits(phase=phase, share=phase_share)
    return None


def _counted_near_a_roof(facts: StepFacts, roofs: RoofSet, end: End) -> Finding | None:
    """Memory or arithmetic that the device counted near their roofs, whatever is declared."""
    memory = roofs.best(MEMORY)
    values = facts.counted
    if facts.dram_bytes is not None and memory is not None:
        roof = end.of(memory.median, *reversed(memory.ends))
        share = facts.dram_bytes / (facts.device_s or facts.time_s.value) / roof
        if share >= NEAR:
            ratio = facts.dram_bytes / facts.bytes if facts.bytes else None
            known = {**values, "dram": min(share, 1.0), "ratio": ratio}
            return findings.counted_near_memory_roof.from_values(known)
    if facts.counters and (pipe := facts.counters.busiest_pipe(NEAR)):
        return findings.pipe_is_busy.from_values({**values, "pipe": pipe})
    return None


def _while_communicating(facts: StepFacts) -> Finding | None:
    share = facts.communicating or 0.0
    return findings.only_communicates(share=share) if share >= _LEAST else None


def _while_on_device(facts: StepFacts) -> Finding | None:
    """By what the device counted in the solo run; None where that says nothing."""
    counters = facts.counters
    if counters is None:
        return None
    if counters.at_power_cap:
        return findings.at_power_cap(**facts.counted)
    if counters.sm is None:
        return None
    occupancy = counters.occupancy
    if counters.sm < NEAR or (occupancy is not None and occupancy < _FEW):
        return findings.too_little_in_flight(**facts.counted)
    if occupancy is not None and occupancy >= _RESIDENT:
        return findings.warps_wait(**facts.counted)
    return None


def _host_cause(facts: StepFacts, shares: RoofShares, costs: HostCosts) -> Finding | None:
    """Return what else a CPU did: the largest part, where that explains what is lost."""
    if facts.on_gpu:
        return None
    if facts.waited is not None and facts.waited >= _MOST_OF_IT:
        return findings.thread_waits(share=facts.waited)
    preempted = facts.preempted or 0.0
    running = 1 - preempted
    # it is near a roof while it runs
    if preempted >= _LEAST and shares.ideal >= NEAR * running > 0:
        return findings.thread_is_preempted(share=preempted)
    name, share = costs.dominant
    lost = 1 - min(1.0, shares.ideal / running) if running else 1.0
    if share >= max(_LEAST, _PART * lost):
        if name == "page faults":
            return findings.page_faults_take_the_time(faults=facts.faults or 0.0, share=share)
        return findings.launches_take_the_time(operations=facts.launches, share=share)
    if facts.outside is not None and facts.outside >= _MOST_OF_IT:
        return findings.outside_of_torch(share=facts.outside)
    if facts.gathering is not None and facts.gathering >= _MOST_OF_IT:
        return findings.random_accesses(share=facts.gathering)
    if facts.strided is not None and facts.strided >= _MOST_OF_IT and facts.bytes:
        return findings.strided_accesses(share=facts.strided)
    if preempted >= _MOST_OF_IT:
        return findings.too_disturbed(share=preempted)
    return None


def _unexplained(facts: StepFacts, shares: RoofShares, costs: HostCosts) -> Finding:
    longest: dict[str, Value] = {}
    if facts.longest_operation is not None:
        operation, share = facts.longest_operation
        longest = {"operation": operation, "share": share}
    if not facts.bytes and not facts.flops:
        return findings.no_work_declared.from_values(longest)
    if shares.incomplete:
        return findings.ceilings_missing()
    host = {
        "launching": costs.launches,
        "faulting": costs.page_faults,
        "preempted": facts.preempted,
        "waited": facts.waited,
        "outside": facts.outside,
    }
    known = {name: share for name, share in host.items() if share is not None}
    return findings.unexplained.from_values({**facts.counted, **known, **longest})


def _link_bound(facts: StepFacts, roofs: RoofSet, end: End) -> Bound | None:
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
        reason = findings.link_and_near_compute_roof
    elif share >= NEAR:
        reason = findings.above_link_roof if share > OVER else findings.near_link_roof
    else:
        reason = findings.far_from_link_roof
    return Bound(reason.from_values(values), link, link.median)


DIFFERS = 0.2
"""Bytes that a device counted differ from the declared ones where they do by more than this."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """A variant below its roof.

    `rate` is in FLOP/s, or in B/s where no FLOPs are declared; `intensity` in FLOP/byte, None where
    it has none. Both are of declared work; `bytes_counted` is what the device counted between
    itself and its memory, in a step. `fraction` is rate over attainable; its interval holds
    the roof's error as well as the time's. `roof_processes`: in
    how many processes the roof was measured between the blocks, `fraction` then being the median of
    what the blocks of each process give; 0 where the roof is of another time.
    """

    variant: str
    dtype: str
    unit: str
    rate: Estimate
    flops_per_byte: float | None = None
    roof: str
    source: str
    attainable: float
    fraction: Estimate
    bound: BoundKind
    or_else: list[BoundKind] = []
    """Other bounds within the intervals of times and roofs: with any it is unsure."""
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
        """Return whether it has a place below the roofs; a rate of bytes only has none."""
        return (
            self.flops_per_byte is not None
            and self.flops_per_byte > 0
            and self.rate.value > 0
            and self.unit == "FLOP/s"
        )


class OperationPoint(Point, frozen=True, kw_only=True):
    """An operation of a profiled step below its roof: `variant` is its name.

    FLOPs and bytes are derived from shapes by a formula, and the time is that of the recording: its
    kernels' on a GPU, on a CPU its own with that of the operations within it. `seconds` are those
    of a step, in `calls` calls. `inputs` is the type of its first tensor.
    """

    shapes: str
    inputs: str | None
    calls: float
    seconds: float
    flops: float | None
    bytes: float | None


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a step, and the evidence. `or_else` are other bounds that it may have, within
    the intervals of times and roofs: with any, the bound is unsure.
    """

    bound: BoundKind
    or_else: list[BoundKind] = []
    reason: Finding


@dataclass(frozen=True)
class Roofline:
    """The parts of the drawing: ceilings, points, and indices of the points that arrows connect."""

    ceilings: Sequence[Ceiling]
    points: Sequence[Point] = ()
    arrows: Sequence[tuple[int, int]] = ()
    noun: str = "variant"
    """What a point is."""


def point_of(variant: str, facts: StepFacts, bound: Bound | None) -> Point | None:
    """Place one variant; None where its work is not declared, or no ceiling is known for it."""
    if bound is None or bound.ceiling is None:
        return None
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    share = facts.share_of(bound.ceiling)
    intensity = bytes_ratio = None
    if facts.bytes and not on_link:
        intensity = facts.flops / facts.bytes if facts.flops else None
        bytes_ratio = facts.dram_bytes / facts.bytes if facts.dram_bytes else None
    if bytes_ratio is not None and abs(bytes_ratio - 1) <= DIFFERS:
        bytes_ratio = None
    return Point(
        variant=variant,
        dtype=facts.units,
        unit="FLOP/s" if facts.flops and not on_link else "B/s",
        rate=facts.time_s.moved(lambda seconds: amount / seconds),
        flops_per_byte=intensity,
        roof=bound.ceiling.name,
        source=bound.ceiling.source,
        attainable=bound.attainable,
        fraction=share.estimate,
        bound=bound.kind,
        or_else=list(bound.or_else),
        reason=bound.reason,
        bytes_counted=facts.dram_bytes,
        bytes_ratio=bytes_ratio,
        roof_processes=share.processes,
    )
