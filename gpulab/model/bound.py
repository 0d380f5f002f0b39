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
    """`name`: memory, compute, launch, latency, cache, link; `ceiling` is the roof above, `attainable` below it.

    `attainable` is in FLOP/s, or in B/s where no FLOPs are declared.
    """

    name: str
    why: str
    ceiling: Ceiling
    attainable: float


def bound_of(facts: Facts, roofs: Roofs) -> Bound | None:
    """None where nothing is declared, or no ceiling is known that the declared work could be held against."""
    moved = facts.bytes / facts.seconds if facts.bytes else 0.0
    done = facts.flops / facts.seconds if facts.flops else 0.0
    if facts.roof in LINKS:
        return _of_link(facts, roofs, moved)
    memory, cache = roofs.best(MEMORY), roofs.best(CACHE)
    of_arithmetic = roofs.compute(facts.dtype, facts.roof) if done else None
    of_memory = _share(moved, memory)
    cached = bool(moved) and _in_cache(facts, of_memory)
    bandwidth = cache if cached and cache else memory
    of_bandwidth, arithmetic = _share(moved, bandwidth), _share(done, of_arithmetic)
    ceiling, attainable = _attainable(facts, bandwidth if moved else None, of_arithmetic)
    if ceiling is None:
        return None
    far = _told(of_memory, arithmetic, facts)
    # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof, and far below the best.
    stream = roofs.slowest_stream()
    streams = bool(stream and not cached and moved >= _STREAM * stream.median)
    launches = _launch_share(facts, roofs)
    if max(of_bandwidth, arithmetic) < NEAR and launches and not streams:
        name, why = "launch", f"{launches}, and no roof is near ({far}): fewer, larger operations make it faster"
    elif arithmetic >= max(NEAR, of_bandwidth):
        name, why = "compute", f"{far}: fewer or cheaper operations make it faster"
        if arithmetic > OVER:
            why = f"{far}: above the roof, so the declared FLOPs or the ceiling are wrong"
    elif cached and max(of_bandwidth, of_memory) >= NEAR:
        name, why = "cache", _why_cached(facts, of_memory, of_bandwidth if bandwidth is cache else None)
    elif of_bandwidth >= NEAR:
        name, why = "memory", f"{far}: fewer bytes make it faster"
    elif streams and stream:
        name, why = "memory", f"{far}, as fast as a {stream.kind} moves its bytes: fewer bytes make it faster"
    else:
        name, why = "latency", f"no roof is near ({far}): too little in flight, or accesses that waste bandwidth"
    return Bound(name, why, ceiling, attainable)


def _of_link(facts: Facts, roofs: Roofs, moved: float) -> Bound | None:
    link = roofs.best(facts.roof or "")
    if link is None or not moved:
        return None
    share = moved / link.best
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


def _launch_share(facts: Facts, roofs: Roofs) -> str:
    """How launches make up the time, in words; empty where they do not."""
    if facts.waiting is not None and facts.waiting >= _WAITING:
        return f"the device waits for the host {facts.waiting:.0%} of the time"
    each = roofs.launch_s(on_device=facts.on_device)
    if not each or not facts.launches:
        return ""
    share = facts.launches * each / facts.seconds
    many = f"starting its {facts.launches} operations" if facts.launches > 1 else "starting its one operation"
    return f"{many} takes {min(share, 1.0):.0%} of its time" if share >= _LAUNCHES else ""


def _why_cached(facts: Facts, of_memory: float, of_cache: float | None) -> str:
    of = f", {of_cache:.0%} of the cache's roof" if of_cache is not None else ""
    if of_memory > OVER:
        larger = (facts.bytes or 0) > facts.cache_bytes
        doubt = ", or it moves fewer than are declared" if larger else ""
        return f"{of_memory:.1f}x of what device memory can: its bytes stay in the cache{doubt}{of}"
    if facts.dram_bytes is not None and facts.bytes:
        return f"the device counted only {facts.dram_bytes / facts.bytes:.0%} of its bytes in memory: cached{of}"
    return f"its bytes fit into the cache and stay there{of}"


def _share(rate: float, ceiling: Ceiling | None) -> float:
    return rate / ceiling.best if ceiling else 0.0


def _told(of_memory: float, arithmetic: float, facts: Facts) -> str:
    told = [f"memory {of_memory:.0%}"] if facts.bytes else []
    told += [f"{facts.dtype or 'fp32'} arithmetic {arithmetic:.0%}"] if facts.flops else []
    return ", ".join(told)
