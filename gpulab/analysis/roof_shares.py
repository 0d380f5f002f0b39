"""How near the declared work of a step came to each roof, at one end of all intervals."""

from __future__ import annotations

from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.evidence import End, StepFacts
from gpulab.protocol.ceiling import CACHE, MEMORY, Ceiling
from gpulab.protocol.finding import Value

OVER = 1.05
"""Above this share of a roof the model is wrong: the bytes were in a cache, or other work was done than declared."""
_FITS = 0.5
_COUNTED = 0.5
_STREAM = 0.8
"""Of what the slowest stream reaches: a step as fast as that does nothing but move bytes."""


class RoofShares:
    """How near the declared work came to each roof, at one end of all intervals.

    0 where none is declared, None where no ceiling is known.
    """

    def __init__(self, facts: StepFacts, roofs: RoofSet, end: End) -> None:
        memory, cache = roofs.best(MEMORY) if facts.bytes else None, roofs.best(CACHE)
        self.units = roofs.compute(facts.dtype) if facts.flops else None
        self.memory = share_of(facts, facts.bytes, memory, end)
        self.arithmetic = share_of(facts, facts.flops, self.units, end)
        self.cached = bool(facts.bytes) and _in_cache(facts, self.memory or 0.0)
        self.bandwidth = cache if self.cached and cache else memory
        self.bytes = share_of(facts, facts.bytes, self.bandwidth, end)
        # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof, far below the best.
        stream = roofs.slowest_stream()
        at_stream = stream is not None and not self.cached and (self.memory or 0.0) >= _STREAM * stream[1]
        self.stream = stream[0] if at_stream and stream else None
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


def _in_cache(facts: StepFacts, memory_share: float) -> bool:
    """Whether a step's bytes come out of the cache: counted by the device, or too fast, or too few to leave it."""
    if facts.dram_bytes is not None and facts.bytes:
        return facts.dram_bytes < _COUNTED * facts.bytes
    fits = facts.hot and 0 < (facts.bytes or 0) <= facts.cache_bytes * (1 if facts.cache_seen else _FITS)
    return memory_share > OVER or fits


def attainable_below(
    facts: StepFacts, bandwidth: Ceiling | None, arithmetic: Ceiling | None
) -> tuple[Ceiling | None, float]:
    """The lower of the two roofs at the step's intensity, in FLOP/s; in B/s where it does no FLOPs."""
    if not facts.flops:
        return bandwidth, bandwidth.median if bandwidth else 0.0
    slope = bandwidth.median * facts.flops / facts.bytes if bandwidth and facts.bytes else None
    if arithmetic is None:
        return (bandwidth, slope) if slope is not None else (None, 0.0)
    if slope is None or arithmetic.median <= slope:
        return arithmetic, arithmetic.median
    return bandwidth, slope


def above(share: float, ceiling: Ceiling | None) -> bool:
    """Whether it is more than was ever seen of the roof: then what is declared, or the ceiling, is wrong."""
    return ceiling is not None and share * ceiling.median > OVER * ceiling.highest


def share_of(facts: StepFacts, amount: int | None, ceiling: Ceiling | None, end: End) -> float | None:
    if not amount:
        return 0.0
    return facts.share_of(ceiling).at(end) if ceiling else None
