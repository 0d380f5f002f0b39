"""What limits a step: the roof that its declared work is near, else what takes its time instead.

Nothing is guessed: a cause is named where a measurement shows that it takes the time. Where none
does, the step is unexplained. The roofs are judged three times, at the medians of times and roofs
and at both ends of their intervals: where the answers differ, the bound is unsure.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model", CACM 52(4), 2009:
attainable FLOP/s = min(peak FLOP/s, peak B/s x arithmetic intensity).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import median
from typing import NamedTuple

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding, Value
from gpulab.core.payloads import CACHE, LINKS, MATRIX, MEMORY, VECTOR, family
from gpulab.core.statuses import BoundKind
from gpulab.features.roofline import findings
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.findings import BOUND_OF
from gpulab.stats.statistics import median_interval

NEAR = 0.6
"""A step is bound by a roof this near; where none is, something else limits it."""
OVER = 1.05
"""Above this share the model is wrong: bytes came from a cache, or work was not done."""
DIFFERS = 0.2
"""Bytes that a device counted differ from the declared ones where they do by more than this."""
_LEAST = {
    "waiting": 0.2,
    "communicating": 0.2,
    "phase": 0.2,
    "launching": 1 / 3,
    "faulting": 1 / 3,
    "preempted": 0.5,
    "waited": 0.5,
}
"""From which share of a step on each thing beside its work limits it."""
_MOST_OF_IT = 0.5
_STREAM = 0.8
"""Of what the slowest stream reaches: a step as fast as that does nothing but move bytes."""
_WAITS = ("waiting", "waited")
_FEW = 0.25
"""Occupancy at which an SM has few warps to hide waiting with."""


class Share(NamedTuple):
    """The share of a roof that a step reaches: at the medians of its time and of the roof, and at
    the low and the high end of their intervals. Without exact intervals the ends are the least and
    the most that was seen.
    """

    values: tuple[float, float, float]
    exact: bool = True
    processes: int = 0
    """In which both were measured in the same rounds; 0 where they were not."""

    @property
    def estimate(self) -> Estimate:
        """Return it as it is reported: with exact ends, or none."""
        value, low, high = self.values
        return Estimate(value=value, low=low, high=high) if self.exact else Estimate(value=value)


@dataclass(frozen=True)
class StepFacts:
    """One step. Bytes and FLOPs are declared; the rest was measured, or is missing."""

    time_s: Estimate
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    roof: str | None = None
    """The roof that the scenario names: of the links only, all others follow from the work."""
    beside: Mapping[tuple[str, str], Sequence[float]] = field(default_factory=dict)
    """By roof: what a step takes of it in each process, for a byte or FLOP."""
    sm_mhz: float | None = None
    """The mean clock of its blocks."""
    on_gpu: bool = False
    hot: bool = True
    cache_bytes: int = 0
    """So many bytes stay in the last-level cache."""
    dram_bytes: float | None = None
    """What the device counted between itself and its memory."""
    launches: int | None = None
    """Operations that the host starts in a step."""
    others: Mapping[str, float] = field(default_factory=dict)
    """Shares of the step that something else than its work takes: `launching` operations,
    `faulting` of new pages, a thread that is `preempted` or has `waited`; a device that is
    `waiting` for the host, or only `communicating`; a `phase` that waits.
    """
    phase: str = ""
    """The phase in which it waits longest."""
    faults: float = 0.0
    """Minor page faults of a step."""
    longest_operation: tuple[str, float] | None = None
    """The operation that takes longest, and its share of the step."""
    counters: Mapping[str, float] = field(default_factory=dict)
    """What the device counted in the solo run: shares of its own time, and its power."""
    at_power_cap: bool = False

    @property
    def units(self) -> str:
        """The dtype whose arithmetic is meant."""
        return self.dtype or "fp32"

    @property
    def flops_per_byte(self) -> float | None:
        """Its arithmetic intensity, at the device's memory; None where either is not declared."""
        if not self.flops or not self.bytes or self.roof in LINKS:
            return None
        return self.flops / self.bytes

    @property
    def power(self) -> dict[str, Value]:
        """The power, of a step that runs at the limit: its roof was measured there too."""
        if not self.at_power_cap:
            return {}
        return {name: self.counters[name] for name in ("power_w", "power_limit_w")}

    def clock_scale(self, ceiling: Ceiling) -> float:
        """The clock of the step over that at which a roof of arithmetic was measured. Other roofs
        do not follow the clock of the SMs.

        A step that does more than the roof at the clock beside its blocks had a higher one: at the
        power limit products of 770 TFLOP/s were read at 0.90 of the clock of a roof of 794.
        """
        if ceiling.roof not in (MATRIX, VECTOR) or not (self.sm_mhz and ceiling.sm_mhz):
            return 1.0
        reached = (self.flops or 0) / self.time_s.value / ceiling.median
        return max(self.sm_mhz / ceiling.sm_mhz, min(1.0, reached))

    def share_of(self, ceiling: Ceiling) -> Share:
        """The share of a ceiling, at the clock of the step, that it reaches.

        By blocks of both in the same rounds where there are any: a machine that drifts moves both.
        """
        amount = self.flops if ceiling.roof in (MATRIX, VECTOR) else self.bytes
        at_roof = (amount or 0) / self.clock_scale(ceiling)
        if ceiling.processes and (per_unit := self.beside.get(ceiling.key)):
            beside = [share * at_roof for share in per_unit]
            count = len(beside)
            if interval := median_interval(beside):
                return Share((interval.median, interval.low, interval.high), processes=count)
            ends = median(beside), min(beside), max(beside)
            return Share(ends, exact=False, processes=count)
        low, high = ceiling.ends
        fast_s, slow_s = self.time_s.ends
        share = at_roof / self.time_s.value / ceiling.median
        values = share, at_roof / slow_s / high, at_roof / fast_s / low
        return Share(values, exact=self.time_s.has_interval)


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a step, and the evidence. `or_else` are other bounds that it may have, within
    the intervals of times and roofs: with any, the bound is unsure.
    """

    bound: BoundKind
    or_else: list[BoundKind] = []
    reason: Finding


class Point(Cause, frozen=True, kw_only=True):
    """A variant below its roof.

    `rate` is in FLOP/s, or in B/s where no FLOPs are declared; `flops_per_byte` is None where it
    has none. Both are of declared work; `bytes_counted` is what the device counted between
    itself and its memory, in a step. `fraction` is rate over attainable; its interval holds
    the roof's error as well as the time's. `roof_processes`: in
    how many processes the roof was measured between the blocks, `fraction` then being the median of
    what the blocks of each process give; 0 where the roof is of another time. `clock_scale`: the
    SMs' clock in the step, as it was read or, where it was higher, by its rate, over that at which
    the roof was measured, by which it is scaled.
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
    bytes_counted: float | None = None
    bytes_ratio: float | None = None
    """Counted bytes over declared ones, where they differ by more than 20 %."""
    roof_processes: int = 0
    clock_scale: float = 1.0

    @property
    def family(self) -> str:
        return family(self.dtype)

    @property
    def is_drawable(self) -> bool:
        """Return whether it has a place below the roofs; a rate of bytes only has none."""
        return bool(self.flops_per_byte) and self.rate.value > 0 and self.unit == "FLOP/s"


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


class _Reach:
    """How near the declared work comes to each roof, at one end of all intervals: 0 where none is
    declared, None where no ceiling is known.
    """

    def __init__(self, facts: StepFacts, roofs: RoofSet, end: int) -> None:
        self._facts = facts
        self._end = end
        self.units = roofs.compute(facts.dtype) if facts.flops else None
        self.arithmetic = self._share(facts.flops, self.units)
        self.stream = roofs.slowest_stream()
        self.memory: float | None = 0.0
        self.is_cached = False
        if facts.roof in LINKS:
            self.bandwidth = roofs.best(facts.roof or "")
        else:
            self.bandwidth = roofs.best(MEMORY) if facts.bytes else None
            self.memory = self._share(facts.bytes, self.bandwidth)
            self.is_cached = bool(facts.bytes) and _fits_cache(facts, self.memory or 0.0)
        if self.is_cached:
            self.bandwidth = roofs.best(CACHE) or self.bandwidth
        self.bytes = self._share(facts.bytes, self.bandwidth)

    def _share(self, amount: int | None, ceiling: Ceiling | None) -> float | None:
        if not amount:
            return 0.0
        return self._facts.share_of(ceiling).values[self._end] if ceiling else None

    @property
    def values(self) -> dict[str, Value]:
        """As values of a finding."""
        facts = self._facts
        values: dict[str, Value] = {}
        if facts.roof in LINKS:
            values |= {"link": facts.roof, "share": self.bytes}
        elif facts.bytes:
            values["memory"] = self.memory
            if self.bandwidth and self.bandwidth.roof == CACHE:
                values["cache"] = self.bytes
        if facts.flops and (self.units or facts.roof not in LINKS):
            values |= {"arithmetic": self.arithmetic, "dtype": facts.units}
        return values

    def attainable(self) -> tuple[Ceiling | None, float]:
        """The lower of two roofs at the step's intensity, in FLOP/s; in B/s without FLOPs."""
        facts, bandwidth, units = self._facts, self.bandwidth, self.units
        if not facts.flops or facts.roof in LINKS:
            return bandwidth, bandwidth.median if bandwidth else 0.0
        flat = units.median * facts.clock_scale(units) if units else None
        if not bandwidth or not facts.bytes:
            return units, flat or 0.0
        slope = bandwidth.median * facts.flops / facts.bytes
        return (bandwidth, slope) if flat is None or slope < flat else (units, flat)


def _fits_cache(facts: StepFacts, memory_share: float) -> bool:
    """Return whether a step's bytes are the cache's: counted, too fast, or too few to leave it."""
    if facts.dram_bytes is not None and facts.bytes:
        return facts.dram_bytes < _MOST_OF_IT * facts.bytes
    fits = facts.hot and 0 < (facts.bytes or 0) <= facts.cache_bytes
    return memory_share > OVER or fits


def limit_of(variant: str, facts: StepFacts, roofs: RoofSet) -> Cause | None:
    """Return what limits a step: its point where it declares work that has a roof. None where
    nothing is known.
    """
    reaches = [_Reach(facts, roofs, end) for end in range(3)]
    reach = reaches[0]
    ceiling, attainable = reach.attainable()
    if facts.roof in LINKS and (ceiling is None or not facts.bytes):
        return None
    far = _far_from_roofs(facts, reach, roofs)
    if ceiling is None and far.code == "ceilings_missing":
        return None
    reasons = [(_near_a_roof(facts, each) if ceiling else None) or far for each in reaches]
    kinds = [BOUND_OF[reason.code] for reason in reasons]
    reason = reasons[0]
    cause = Cause(
        bound=kinds[0],
        or_else=list(dict.fromkeys(kind for kind in kinds if kind != kinds[0])),
        reason=Finding(code=reason.code, values={**reach.values, **reason.values}),
    )
    return _point_of(variant, facts, cause, ceiling, attainable) if ceiling else cause


def _near_a_roof(facts: StepFacts, reach: _Reach) -> Finding | None:
    """The roof that declared work reaches; None where every one is far."""
    moved = reach.bytes or 0.0
    arithmetic = reach.arithmetic or 0.0
    if arithmetic >= max(NEAR, moved):
        return findings.near_compute_roof(**facts.power)
    if reach.is_cached:
        return _in_cache(facts, reach) if max(moved, reach.memory or 0.0) >= NEAR else None
    if facts.roof in LINKS:
        return findings.near_link_roof.from_values({}) if moved >= NEAR else None
    if moved >= NEAR:
        return findings.near_memory_roof.from_values(facts.power)
    # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof, far
    # below the best.
    stream, part = reach.stream
    return findings.near_memory_roof(as_fast_as=stream) if moved >= _STREAM * part else None


def _in_cache(facts: StepFacts, reach: _Reach) -> Finding:
    if (reach.memory or 0.0) > OVER:
        return findings.bytes_stay_in_cache.from_values({})
    if facts.dram_bytes is not None and facts.bytes:
        return findings.few_bytes_in_memory(counted=facts.dram_bytes / facts.bytes)
    return findings.bytes_fit_cache()


def _far_from_roofs(facts: StepFacts, reach: _Reach, roofs: RoofSet) -> Finding:
    """Return what else takes the time, the first that is shown to."""
    if facts.roof in LINKS:
        return findings.far_from_link_roof.from_values({})
    return (
        _counted_near_a_roof(facts, roofs)
        or _beside_the_work(facts)
        or _on_device(facts)
        or _unexplained(facts, reach)
    )


def _counted_near_a_roof(facts: StepFacts, roofs: RoofSet) -> Finding | None:
    """Memory or arithmetic that the device counted near their roofs, whatever is declared."""
    busy = 1 - facts.others.get("waiting", 0.0)
    memory = roofs.best(MEMORY)
    if facts.on_gpu and facts.dram_bytes is not None and memory is not None:
        share = facts.dram_bytes / facts.time_s.value / memory.median
        if share >= NEAR:
            ratio = facts.dram_bytes / facts.bytes if facts.bytes else None
            known = {**facts.counters, "dram": min(share / busy, 1.0), "ratio": ratio}
            return findings.counted_near_memory_roof.from_values(known)
    pipe = max(findings.PIPES, key=lambda name: facts.counters.get(name, 0.0))
    if facts.counters.get(pipe, 0.0) * busy < NEAR:
        return None
    return findings.pipe_is_busy.from_values({**facts.counters, "pipe": pipe})


def _beside_the_work(facts: StepFacts) -> Finding | None:
    """Return what takes the largest part of a step beside its work; None where that is small."""
    names = ["launching", "faulting", "preempted", "waited"]
    if facts.on_gpu:
        names = ["waiting", "communicating"]
    shares = {name: facts.others[name] for name in ("phase", *names) if name in facts.others}
    large = {name: share for name, share in shares.items() if share >= _LEAST[name]}
    if facts.launches == 1 and large.get("waiting", 1.0) < _MOST_OF_IT:
        del large["waiting"]  # one operation alone cannot be made fewer
    if "phase" in large:  # it says what is waited for
        large = {name: share for name, share in large.items() if name not in _WAITS}
    if not large:
        return None
    name, share = max(large.items(), key=itemgetter(1))
    match name:
        case "phase":
            return findings.phase_waits(phase=facts.phase, share=share)
        case "waiting":
            return _device_waits(facts, share)
        case "communicating":
            return findings.only_communicates(share=share)
        case "launching":
            return findings.launches_take_the_time(operations=facts.launches, share=share)
        case "faulting":
            return findings.page_faults_take_the_time(faults=facts.faults, share=share)
        case "preempted":
            return findings.thread_is_preempted(share=share)
    return findings.thread_waits(share=share)


def _device_waits(facts: StepFacts, share: float) -> Finding:
    launching = facts.others.get("launching")
    if launching is not None and launching >= _MOST_OF_IT * share:
        return findings.device_waits_for_launches(share=share, operations=facts.launches)
    return findings.device_waits_for_host(
        share=share, operations=facts.launches, launching=launching
    )


def _on_device(facts: StepFacts) -> Finding | None:
    """By what the device counted in the solo run; None where that says nothing."""
    counters = facts.counters
    if facts.at_power_cap:
        return findings.at_power_cap(**counters)
    if "sm" not in counters:
        return None
    occupancy = counters.get("occupancy")
    if counters["sm"] < NEAR or (occupancy is not None and occupancy < _FEW):
        return findings.too_little_in_flight(**counters)
    if occupancy is not None and occupancy >= _MOST_OF_IT:
        return findings.warps_wait(**counters)
    return None


def _unexplained(facts: StepFacts, reach: _Reach) -> Finding:
    longest: dict[str, Value] = {}
    if facts.longest_operation is not None:
        operation, share = facts.longest_operation
        longest = {"operation": operation, "share": share}
    is_declared = bool(facts.bytes or facts.flops)
    if longest and not is_declared:
        return findings.no_work_declared.from_values(longest)
    if not is_declared or None in (reach.bytes, reach.arithmetic):
        return findings.ceilings_missing()
    shown = {name: share for name, share in facts.others.items() if name in findings.HOST}
    return findings.unexplained.from_values({**facts.counters, **shown, **longest})


def _point_of(
    variant: str, facts: StepFacts, cause: Cause, ceiling: Ceiling, attainable: float
) -> Point:
    on_link = facts.roof in LINKS
    amount = (facts.bytes if on_link else facts.flops or facts.bytes) or 0
    share = facts.share_of(ceiling)
    bytes_ratio = None
    if facts.bytes and facts.dram_bytes and not on_link:
        bytes_ratio = facts.dram_bytes / facts.bytes
    if bytes_ratio is not None and abs(bytes_ratio - 1) <= DIFFERS:
        bytes_ratio = None
    return Point(
        bound=cause.bound,
        or_else=cause.or_else,
        reason=cause.reason,
        variant=variant,
        dtype=facts.units,
        unit="FLOP/s" if facts.flops and not on_link else "B/s",
        rate=facts.time_s.moved(lambda seconds: amount / seconds),
        flops_per_byte=facts.flops_per_byte,
        roof=ceiling.name,
        source=ceiling.source,
        attainable=attainable,
        fraction=share.estimate,
        bytes_counted=facts.dram_bytes,
        bytes_ratio=bytes_ratio,
        roof_processes=share.processes,
        clock_scale=facts.clock_scale(ceiling),
    )


@dataclass(frozen=True)
class Roofline:
    """The parts of the drawing: ceilings, points, and indices of the points that arrows connect."""

    ceilings: Sequence[Ceiling]
    points: Sequence[Point] = ()
    arrows: Sequence[tuple[int, int]] = ()
    noun: str = "variant"
    """What a point is."""
    earlier_s: float | None = None
    """How long before the run what it did not measure itself was measured."""
