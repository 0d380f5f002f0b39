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
_FAR = 0.3
_CALLS = 5
"""Bare launches that an operation of a framework costs the host, with its checks and its autograd."""
_MODULES = 10
"""And with the Python of modules around it."""
_WRONG = "above the roof, so what is declared or the ceiling is wrong"


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
    cache_seen: bool = False
    """Whether so much was seen to stay in the cache; else it is a size on paper, of which half is safe."""
    hot: bool = True
    roof: str | None = None
    """The roof that the scenario names."""
    wait: tuple[str, float] | None = None
    """The phase in which the step waits longest, and its share of the time."""


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
    far = max(shares.bytes or 0.0, shares.arithmetic or 0.0) < _FAR and not shares.unknown
    return Bound(*_named(facts, shares, _launches(facts, roofs, far=far)), ceiling, attainable)


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
        measured = [one for one in roofs.unsteady() if one.roof == MEMORY or one.kind == (facts.dtype or "fp32")]
        self.lacking = "no steady ceiling" if measured else "no ceiling known here"
        # A CPU loads the lines it stores to, which no declared byte shows: a copy is at the roof, far below the best.
        stream = roofs.slowest_stream()
        at_stream = stream is not None and not self.cached and moved >= _STREAM * stream.median
        self.stream = stream.kind if at_stream and stream else None
        self.told = ", ".join(self._told(facts))

    def _told(self, facts: Facts) -> list[str]:
        shares = {"memory": self.memory} if facts.bytes else {}
        if self.cached and self.bandwidth and self.bandwidth.roof == CACHE:
            shares["cache"] = self.bytes
        if facts.flops:
            shares[f"{facts.dtype or 'fp32'} arithmetic"] = self.arithmetic
        return [f"{name}: {self.lacking}" if one is None else f"{name} {one:.0%}" for name, one in shares.items()]

    @property
    def unknown(self) -> bool:
        return self.bytes is None or self.arithmetic is None


def _named(facts: Facts, of: _Shares, launches: str) -> tuple[str, str]:
    """The bound and its reason, the first that holds."""
    told, moved, arithmetic = of.told, of.bytes or 0.0, of.arithmetic or 0.0
    if arithmetic > OVER and arithmetic >= moved:
        return "compute", f"{told}: {_WRONG}"
    if arithmetic >= max(NEAR, moved):
        return "compute", f"{told}: fewer or cheaper operations make it faster"
    if not of.cached and (moved >= NEAR or of.stream):
        as_fast = f", as fast as a {of.stream} moves its bytes" if of.stream and moved < NEAR else ""
        return "memory", f"{told}{as_fast}: {_WRONG if moved > OVER else 'fewer bytes make it faster'}"
    if of.cached and moved >= NEAR:
        return "cache", _why_cached(facts, of)
    if launches:
        return "launch", f"{launches}, and no roof is near ({told}): fewer, larger operations make it faster"
    if facts.wait and facts.wait[1] >= _WAITING:
        name, share = facts.wait
        return (
            "latency",
            f"its {name} phase takes {share:.0%} of the time, and no roof is near ({told}): mend that first",
        )
    if of.cached and (of.memory or 0.0) >= NEAR:
        return "cache", _why_cached(facts, of)
    if of.unknown:
        again = ": measure again when the machine is quiet" if of.lacking.startswith("no steady") else ""
        return "unknown", f"not every ceiling is known ({told}){again}"
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
    units = roofs.compute(facts.dtype) if facts.flops else None
    arithmetic = _share((facts.flops or 0) / facts.seconds, units) or 0.0
    told = f"{share:.0%} of the {facts.roof} link" + (
        f", {facts.dtype or 'fp32'} arithmetic {arithmetic:.0%}" * bool(units)
    )
    if arithmetic >= max(NEAR, share):
        return Bound("compute", f"{told}: fewer or cheaper operations make it faster", link, link.best)
    if share >= NEAR:
        return Bound("link", f"{told}: {_WRONG if share > OVER else 'fewer bytes make it faster'}", link, link.best)
    why = "copies that wait for other work, that are too small, or from pageable memory"
    return Bound("latency", f"only {told}: {why}", link, link.best)


def _in_cache(facts: Facts, of_memory: float) -> bool:
    """Whether a step's bytes come out of the cache: counted by the device, or too fast, or too few to leave it."""
    if facts.dram_bytes is not None and facts.bytes:
        return facts.dram_bytes < _COUNTED * facts.bytes
    fits = facts.hot and 0 < (facts.bytes or 0) <= facts.cache_bytes * (1 if facts.cache_seen else _FITS)
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


def _launches(facts: Facts, roofs: Roofs, *, far: bool) -> str:
    """How launches make up the time, in words; empty where they do not. `far`: every roof is."""
    each = roofs.launch_s(on_device=facts.on_device)
    share = facts.launches * each / facts.seconds if each and facts.launches else None
    if facts.waiting is not None:  # both clocks are known: what the device does not wait for, launches do not cost
        explained = share is None or _CALLS * share >= _EXPLAINS * facts.waiting
        waits = facts.waiting >= _WAITING and explained
        return f"the device waits for the host {facts.waiting:.0%} of the time" if waits else ""
    many = f"starting its {facts.launches} operations" if facts.launches != 1 else "starting its one operation"
    if share and share >= _LAUNCHES:
        return f"{many} takes {min(share, 1.0):.0%} of its time"
    if share and not facts.on_device and far and _MODULES * share >= _LAUNCHES:
        return f"{many} takes {share:.0%} of its time bare, and several times that with checks and Python"
    return ""


def _why_cached(facts: Facts, of: _Shares) -> str:
    of_cache = of.bytes if of.bandwidth and of.bandwidth.roof == CACHE else None
    nearer = ", so a nearer one has them" if of_cache and of_cache > OVER else ""
    roof = f", {of_cache:.0%} of the last-level cache's roof{nearer}" if of_cache is not None else ""
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
