"""What holds a step back, from evidence: its rates against both roofs, and its time against what launches cost."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.model.ceilings import CACHE, LINKS, MEMORY, Ceiling, Roofs

NEAR = 0.6
"""A roof this near is what a step is bound by; where neither is, something else holds it back."""
OVER = 1.05
"""Above this share of a roof the model is wrong: the bytes were in a cache, or other work was done than declared."""
_LAUNCHES = 0.5
_WAITING = 0.2
_FITS = 0.5
_COUNTED = 0.5
_STREAM = 0.9
_EXPLAINS = 0.5
_CALLS = 5
"""Bare launches that an operation of a framework costs the host, with its checks, its autograd and its Python."""


@dataclass(frozen=True)
class Facts:
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
    hot: bool = True
    roof: str | None = None
    """The roof that the scenario names."""


@dataclass(frozen=True)
class Bound:
    """`name`: memory, compute, launch, latency, cache, link, unknown. `ceiling` is the roof above.

    `attainable` below it is in FLOP/s, or in B/s where no FLOPs are declared.
    """

    name: str
    why: str
    ceiling: Ceiling
    attainable: float


def bound_of(facts: Facts, roofs: Roofs) -> Bound | None:
    """None where nothing is declared, or no ceiling is known that the declared work could be held against."""
    if facts.roof in LINKS:
        return _of_link(facts, roofs)
    shares = _Shares(facts, roofs)
    ceiling, attainable = _attainable(facts, shares.bandwidth, shares.units)
    if ceiling is None:
        return None
    return Bound(*_named(facts, shares, _launches(facts, roofs)), ceiling, attainable)


class _Shares:
    """How near the declared work came to each roof; 0 where none is declared, None where no ceiling is known."""

    def __init__(self, facts: Facts, roofs: Roofs) -> None:
        moved = facts.bytes / facts.seconds if facts.bytes else 0.0
        done = facts.flops / facts.seconds if facts.flops else 0.0
        memory, cache = roofs.best(MEMORY) if moved else None, roofs.best(CACHE)
        self.units = roofs.compute(facts.dtype, facts.roof) if done else None
        self.memory, self.arithmetic = _share(moved, memory), _share(done, self.units)
        self.cached = bool(moved) and _in_cache(facts, self.memory or 0.0)
        self.bandwidth = cache if self.cached and cache else memory
        self.bytes = _share(moved, self.bandwidth)
        # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof, far below the best.
        stream = roofs.slowest_stream()
        at_stream = stream is not None and not self.cached and moved >= _STREAM * stream.median
        self.stream = stream.kind if at_stream and stream else None
        self.told = ", ".join(self._told(facts))

    def _told(self, facts: Facts) -> list[str]:
        told = [_percent("memory", self.memory)] if facts.bytes else []
        told += (
            [_percent("cache", self.bytes)] if self.cached and self.bandwidth and self.bandwidth.roof == CACHE else []
        )
        return told + ([_percent(f"{facts.dtype or 'fp32'} arithmetic", self.arithmetic)] if facts.flops else [])

    @property
    def unknown(self) -> bool:
        return self.bytes is None or self.arithmetic is None


def _named(facts: Facts, of: _Shares, launches: str) -> tuple[str, str]:
    """The bound and its reason, the first that holds."""
    told, moved, arithmetic = of.told, of.bytes or 0.0, of.arithmetic or 0.0
    if arithmetic > OVER and arithmetic >= moved:
        return "compute", f"{told}: above the roof, so the declared FLOPs or the ceiling are wrong"
    if arithmetic >= max(NEAR, moved):
        return "compute", f"{told}: fewer or cheaper operations make it faster"
    if not of.cached and (moved >= NEAR or of.stream):
        as_fast = f", as fast as a {of.stream} moves its bytes" if of.stream and moved < NEAR else ""
        return "memory", f"{told}{as_fast}: fewer bytes make it faster"
    if of.cached and moved >= NEAR:
        return "cache", _why_cached(facts, of)
    if launches:
        return "launch", f"{launches}, and no roof is near ({told}): fewer, larger operations make it faster"
    if of.cached and (of.memory or 0.0) >= NEAR:
        return "cache", _why_cached(facts, of)
    if of.unknown:
        return "unknown", f"not every ceiling is known ({told}): measure again when the machine is quiet"
    if facts.waiting is not None and facts.waiting >= _WAITING:
        return (
            "latency",
            f"the device waits for the host {facts.waiting:.0%} of the time, and not for launches ({told})",
        )
    return "latency", f"no roof is near ({told}): too little in flight, or accesses that waste bandwidth"


def _of_link(facts: Facts, roofs: Roofs) -> Bound | None:
    link = roofs.best(facts.roof or "")
    if link is None or not facts.bytes:
        return None
    share = facts.bytes / facts.seconds / link.best
    if share >= NEAR:
        return Bound("link", f"{share:.0%} of the {facts.roof} link: fewer bytes make it faster", link, link.best)
    why = f"only {share:.0%} of the {facts.roof} link: pageable memory, or copies that are too small"
    return Bound("latency", why, link, link.best)


def _in_cache(facts: Facts, of_memory: float) -> bool:
    """Whether a step's bytes come out of the cache: counted by the device, or too fast, or too few to leave it."""
    if facts.dram_bytes is not None and facts.bytes:
        return facts.dram_bytes < _COUNTED * facts.bytes
    fits = facts.hot and 0 < (facts.bytes or 0) <= _FITS * facts.cache_bytes
    return of_memory > OVER or fits


def _attainable(facts: Facts, bandwidth: Ceiling | None, arithmetic: Ceiling | None) -> tuple[Ceiling | None, float]:
    """The lower of the two roofs at the step's intensity, in FLOP/s; in B/s where it does no FLOPs."""
    if not facts.flops:
        return bandwidth, bandwidth.best if bandwidth else 0.0
    slope = bandwidth.best * facts.flops / facts.bytes if bandwidth and facts.bytes else None
    if arithmetic is None:
        return (bandwidth, slope) if slope is not None else (None, 0.0)
    if slope is None or arithmetic.best <= slope:
        return arithmetic, arithmetic.best
    return bandwidth, slope


def _launches(facts: Facts, roofs: Roofs) -> str:
    """How launches make up the time, in words; empty where they do not."""
    each = roofs.launch_s(on_device=facts.on_device)
    share = facts.launches * each / facts.seconds if each and facts.launches else None
    if facts.waiting is not None:  # both clocks are known: what the device does not wait for, launches do not cost
        explained = share is None or _CALLS * share >= _EXPLAINS * facts.waiting
        waits = facts.waiting >= _WAITING and explained
        return f"the device waits for the host {facts.waiting:.0%} of the time" if waits else ""
    many = f"starting its {facts.launches} operations" if facts.launches != 1 else "starting its one operation"
    return f"{many} takes {min(share, 1.0):.0%} of its time" if share and share >= _LAUNCHES else ""


def _why_cached(facts: Facts, of: _Shares) -> str:
    of_cache = of.bytes if of.bandwidth and of.bandwidth.roof == CACHE else None
    roof = f", {of_cache:.0%} of the cache's roof" if of_cache is not None else ""
    memory = of.memory or 0.0
    if memory > OVER:
        larger = (facts.bytes or 0) > facts.cache_bytes
        doubt = ", or it moves fewer than are declared" if larger else ""
        return f"{memory:.1f}x of what device memory can: its bytes stay in the cache{doubt}{roof}"
    if facts.dram_bytes is not None and facts.bytes:
        return f"the device counted only {facts.dram_bytes / facts.bytes:.0%} of its bytes in memory: cached{roof}"
    return f"its bytes fit into the cache, and so may stay there{roof}"


def _share(rate: float, ceiling: Ceiling | None) -> float | None:
    return 0.0 if not rate else rate / ceiling.best if ceiling else None


def _percent(name: str, share: float | None) -> str:
    return f"{name} {share:.0%}" if share is not None else f"{name}: no steady ceiling"
