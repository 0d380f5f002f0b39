"""Findings of a roofline: what limits a step and the evidence for it, how each ceiling was
measured.

Whatever limits a step, its evidence holds how near it came to each roof, and may hold what the
device counted.
"""

from __future__ import annotations

from collections.abc import Callable

from gpulab.core import units
from gpulab.core.findings import Declaration, Rank, Value, Values, fill, finding
from gpulab.core.statuses import BoundKind, CheckKind
from gpulab.core.units import plural, seconds, times

BOUND_OF: dict[str, BoundKind] = {}
"""What each code says limits a step."""
PIPES = {
    "tensor": "tensor cores",
    "fp64": "FP64 units",
    "fp32": "FP32 units",
    "fp16": "FP16 units",
}
HOST = {
    "launching": "launches",
    "faulting": "page faults",
    "preempted": "contention",
    "waited": "waiting",
}
"""What a host is known to have spent on something else than the work."""
_COUNTERS = {
    "sm": "SMs busy",
    "occupancy": "occupancy",
    "tensor": "tensor",
    "fp64": "FP64",
    "fp32": "FP32",
    "fp16": "FP16",
    "dram": "DRAM",
}
_FEWER_BYTES = "fewer bytes make it faster"
_FEWER_OPERATIONS = "fewer or cheaper operations make it faster"


def _percents(evidence: dict[str, Value], names: dict[str, str]) -> list[str]:
    """Each share that is known, with its name."""
    shares = ((name, evidence.get(key)) for key, name in names.items())
    return [f"{name} {share:.0%}" for name, share in shares if isinstance(share, float)]


def _shares(evidence: dict[str, Value]) -> str:
    """Return how near the step came to each roof."""
    arithmetic = f"{evidence.get('dtype')} arithmetic"
    names = {"memory": "memory", "cache": "cache", "arithmetic": arithmetic}
    unknown = [name for key, name in names.items() if evidence.get(key, 0.0) is None]
    missing = [f"{name}: no ceiling known here" for name in unknown]
    return ", ".join([*_percents(evidence, names), *missing])


def _distance(evidence: dict[str, Value]) -> str:
    """The share of the nearest roof, then of each."""
    shares = _shares(evidence)
    bandwidth = "cache" if "cache" in evidence else "memory"
    known = [evidence.get(key) for key in (bandwidth, "arithmetic")]
    # more than memory's bandwidth came from a cache
    possible = [share for share in known if isinstance(share, float) and share <= 1]
    return f"{max(possible):.0%} of the nearest roof ({shares})" if possible else shares


def _far(evidence: dict[str, Value]) -> str:
    """Say how far the step is from a roof; nothing of one that declares no work."""
    distance = _distance(evidence)
    return f", {distance}" if distance else ""


def _counters(evidence: dict[str, Value]) -> str:
    """Return what the device counted, the pipes only where they did anything; with its power."""
    shares = {key: share for key, share in evidence.items() if isinstance(share, float)}
    known = {
        key: name
        for key, name in _COUNTERS.items()
        if key not in PIPES or shares.get(key, 0.0) >= 0.02
    }
    return ", ".join(filter(None, [*_percents(evidence, known), _power(evidence)]))


def _power(evidence: dict[str, Value]) -> str:
    power = evidence.get("power_w")
    limit = evidence.get("power_limit_w")
    of_limit = f" of {limit:.0f}" if isinstance(limit, float) else ""
    return f"{power:.0f}{of_limit} W" if isinstance(power, float) else ""


def _in_brackets(evidence: dict[str, Value]) -> str:
    counters = _counters(evidence)
    return f" ({counters})" if counters else ""


def _capped(evidence: dict[str, Value]) -> str:
    power = _power(evidence)
    return f", at the power limit ({power})" if power else ""


def _above(evidence: dict[str, Value]) -> str:
    shares = (evidence.get(key) for key in ("arithmetic", "memory", "share"))
    is_above = any(isinstance(share, float) and share > 1.05 for share in shares)
    return ", above the roof as it was measured" if is_above else ""


def _as_fast(evidence: dict[str, Value]) -> str:
    stream = evidence.get("as_fast_as")
    return f", as fast as a {stream} moves its bytes" if stream else ""


def _cache_roof(evidence: dict[str, Value]) -> str:
    share = evidence.get("cache")
    return f", {share:.0%} of the last-level cache's roof" if isinstance(share, float) else ""


def _of_link(evidence: dict[str, Value]) -> str:
    parts = [fill("{share:.0%} of the {link} link", evidence)]
    parts += _percents(evidence, {"arithmetic": f"{evidence.get('dtype')} arithmetic"})
    return ", ".join(parts)


_PHRASES: dict[str, Callable[[dict[str, Value]], str]] = {
    "shares": _shares,
    "far": _far,
    "counters": _counters,
    "counted": _in_brackets,
    "capped": _capped,
    "above": _above,
    "as_fast": _as_fast,
    "cache_roof": _cache_roof,
    "of_link": _of_link,
    "units": lambda evidence: PIPES.get(str(evidence["pipe"]), "units"),
}
"""Fields that a sentence about a limit may have beside the values of its finding."""


class _Evidence(dict[str, Value]):
    def __missing__(self, name: str) -> str:
        return _PHRASES[name](self)


def limited_by(
    kind: BoundKind, sentence: str = ""
) -> Callable[[Callable[Values, str | None]], Declaration[Values]]:
    """Declares a finding that says what limits a step."""

    def declare(words: Callable[Values, str | None]) -> Declaration[Values]:
        BOUND_OF[words.__name__] = kind
        if not sentence:
            return finding()(words)
        return Declaration(words, lambda **values: fill(sentence, _Evidence(values)), {})

    return declare


@limited_by(BoundKind.COMPUTE, "{shares}{above}{capped}: " + _FEWER_OPERATIONS)
def near_compute_roof(**evidence: Value) -> None: ...
@limited_by(BoundKind.MEMORY, "{shares}{above}{as_fast}{capped}: " + _FEWER_BYTES)
def near_memory_roof(*, as_fast_as: str = "", **evidence: Value) -> None: ...
@limited_by(BoundKind.LINK, "{of_link}{above}: " + _FEWER_BYTES)
def near_link_roof(*, share: float, link: str, **evidence: Value) -> None: ...
@limited_by(BoundKind.LATENCY, "only {of_link}")
def far_from_link_roof(*, share: float, link: str, **evidence: Value) -> None: ...
@limited_by(BoundKind.CACHE, "{memory:.1f}x device-memory bandwidth: served from cache{cache_roof}")
def bytes_stay_in_cache(*, memory: float, **evidence: Value) -> None: ...
@limited_by(
    BoundKind.CACHE,
    "the device counted only {counted:.0%} of its bytes in memory: served from cache{cache_roof}",
)
def few_bytes_in_memory(*, counted: float, **evidence: Value) -> None: ...
@limited_by(BoundKind.CACHE, "its bytes fit into the cache, and so may stay there{cache_roof}")
def bytes_fit_cache(**evidence: Value) -> None: ...


@limited_by(BoundKind.MEMORY)
def counted_near_memory_roof(*, dram: float, ratio: float | None, **evidence: Value) -> str:
    of_declared = "" if ratio is None else f", moving {ratio:.1f}x the declared bytes"
    return (
        f"runs at {dram:.0%} of memory bandwidth by the device's counters{of_declared} "
        f"({_shares(evidence)}): {_FEWER_BYTES}"
    )


@limited_by(
    BoundKind.COMPUTE,
    "the {units} work most of the time ({counters}), on more than is declared ({shares}): "
    + _FEWER_OPERATIONS,
)
def pipe_is_busy(*, pipe: str, **evidence: Value) -> None: ...


@limited_by(BoundKind.LAUNCH)
def launches_take_the_time(
    *, share: float, operations: int | None = None, **evidence: Value
) -> str:
    started = "operations" if operations is None else plural(operations, "operation")
    return (
        f"starting its {started} takes {share:.0%} of the time that its thread runs, be it "
        f"computing or other{_far(evidence)}"
    )


@limited_by(BoundKind.LAUNCH, "the device waits for the host {share:.0%} of the time{far}")
def device_waits_for_launches(*, share: float, **evidence: Value) -> None: ...


@limited_by(BoundKind.HOST)
def device_waits_for_host(
    *,
    share: float,
    operations: int | None = None,
    launching: float | None = None,
    **evidence: Value,
) -> str:
    bare = ""
    if operations and launching is not None:
        bare = f"; starting {plural(operations, 'operation')} alone takes {launching:.0%}"
    return f"the device waits for the host {share:.0%} of the time{bare}{_far(evidence)}"


@limited_by(BoundKind.LATENCY, "its {phase} phase takes {share:.0%} of the time{far}")
def phase_waits(*, phase: str, share: float, **evidence: Value) -> None: ...
@limited_by(
    BoundKind.COMMUNICATION,
    "for up to {share:.0%} of the step the device only communicates, or waits for another "
    "rank{far}: send less, or while something else is computed, and give all ranks the same work",
)
def only_communicates(*, share: float, **evidence: Value) -> None: ...
@limited_by(
    BoundKind.PAGE_FAULTS,
    "{faults:,.0f} page faults a step take {share:.0%} of the time that its thread runs{far}: "
    "reuse memory instead of allocating it",
)
def page_faults_take_the_time(*, faults: float, share: float, **evidence: Value) -> None: ...
@limited_by(
    BoundKind.WAITING,
    "its thread sleeps, or waits for another thread, a process or a device, {share:.0%} of the "
    "time: overlap that with work, or wait less",
)
def thread_waits(*, share: float) -> None: ...
@limited_by(
    BoundKind.PREEMPTED,
    "its thread is descheduled {share:.0%} of the time{far}: measure on a quiet machine",
)
def thread_is_preempted(*, share: float, **evidence: Value) -> None: ...
@limited_by(
    BoundKind.POWER, "at the power limit ({counters}){far}: what takes less energy is faster"
)
def at_power_cap(**evidence: Value) -> None: ...
@limited_by(BoundKind.LATENCY, "few warps in flight{counted}{far}")
def too_little_in_flight(**evidence: Value) -> None: ...
@limited_by(BoundKind.LATENCY, "the SMs are full of stalled warps{counted}{far}")
def warps_wait(**evidence: Value) -> None: ...
@limited_by(BoundKind.UNKNOWN, "not every ceiling is known ({shares})")
def ceilings_missing(**evidence: Value) -> None: ...
@limited_by(
    BoundKind.UNKNOWN,
    "it declares no work (bytes, flops) that a roof could limit; {operation} takes {share:.0%} of "
    "its time",
)
def no_work_declared(*, operation: str, share: float) -> None: ...


@limited_by(BoundKind.UNEXPLAINED)
def unexplained(
    *, operation: str | None = None, share: float | None = None, **evidence: Value
) -> str:
    longest = "" if share is None else f"{operation} {share:.0%}"
    seen = [_counters(evidence), ", ".join(_percents(evidence, HOST)), longest]
    measured = "; ".join(filter(None, seen))
    return f"{_distance(evidence)}; cause not determined" + (f" ({measured})" if measured else "")


@finding("the ceilings could not be measured: {message}", rank=Rank.EXPLAINING)
def ceilings_failed(*, message: str) -> None: ...
@finding("the ceiling {ceiling} could not be measured: {message}", rank=Rank.EXPLAINING)
def ceiling_failed(*, ceiling: str, message: str) -> None: ...
@finding(
    "not used as ceilings: {ceilings:list}: their best is over {times:g}x their median, so the "
    "machine was disturbed",
    rank=Rank.EXPLAINING,
)
def ceilings_not_used(*, ceilings: list[str], times: float) -> None: ...
@finding(
    "declares {declared:.4g} FLOPs a step, and torch counts {counted:.4g} in its products and "
    "convolutions",
    check=CheckKind.WORK,
    short="FLOPs not as declared",
    several="declared FLOPs of a step, and what torch counts in its products and convolutions:",
    each="{declared:.4g} and {counted:.4g}",
)
def flops_differ(*, declared: float, counted: float) -> None: ...
@finding(
    "moves {ratio:.1f}x the bytes that it declares (the least that is needed), by the device's "
    "counters",
    rank=Rank.EXPLAINING,
    several="more bytes moved than declared (the least that is needed), by the device's counters:",
    each="{ratio:.1f}x",
)
def moves_more_bytes(*, ratio: float) -> None: ...
@finding(
    "declares {declared:bytes} a step, and the operands of its operations are {operands:bytes}",
    check=CheckKind.WORK,
    several="declared bytes of a step, and those of the operands of its operations:",
    each="{declared:bytes} and {operands:bytes}",
)
def declares_more_bytes(*, declared: float, operands: float) -> None: ...


@finding()
def above_roof(
    *,
    declared: float,
    unit: str,
    time_s: float,
    rate: float,
    roof: str,
    roof_rate: float,
    ratio: float,
    allowed: float,
) -> str:
    achieved = f"{units.rate(rate)}{unit}/s"
    possible = f"{units.rate(roof_rate)}{unit}/s"
    return (
        f"declares {units.rate(declared)}{unit} in {seconds(time_s)}: {achieved}, "
        f"{times(ratio)} of {roof} ({possible}), and more than {allowed:.1f}x is not possible"
    )


@finding("{ratio:.0%} of the measured roof ({roof}): implausible", short="{ratio:.0%} of its roof")
def just_above_roof(*, ratio: float, roof: str) -> None: ...
@finding("datasheet of {device}")
def datasheet(*, device: str) -> None: ...
@finding("{mhz:.0f} MHz x {transfers} x {bits} bit")
def memory_clock(*, mhz: float, transfers: int, bits: int) -> None: ...
@finding("{sms} SMs x {per_clock:g} {unit} x {mhz:.0f} MHz")
def sm_clock(*, sms: int, per_clock: float, unit: str, mhz: float) -> None: ...
@finding("arrays of {bytes:bytes}")
def arrays(*, bytes: int) -> None: ...
@finding("product of {size}^3, random data")
def product(*, size: int) -> None: ...
@finding("convolution of {side}x{side} images with {channels} channels, random data")
def convolution(*, channels: int, side: int) -> None: ...
@finding("{chains} chains of FMAs a thread, {blocks} blocks of {threads}")
def fma_chains(*, chains: int, blocks: int, threads: int) -> None: ...
@finding("{passes} reads of {bytes:bytes} in one launch")
def repeated_reads(*, passes: int, bytes: int) -> None: ...
@finding("first touches of {pages} pages, one by one")
def first_touches(*, pages: int) -> None: ...
@finding("additions of one element, {count} in a row")
def additions(*, count: int) -> None: ...
@finding("additions of one element, {count} in a row, on the device's clock")
def additions_on_device_clock(*, count: int) -> None: ...
@finding("a graph of {count} additions")
def graph_of_additions(*, count: int) -> None: ...
@finding("bus bandwidth, {backend} between {ranks} ranks of this machine")
def between_ranks(*, backend: str, ranks: int) -> None: ...
@finding("on the host's clock")
def host_clock() -> None: ...
@finding("page-locked for this one copy")
def pinned_for_one_copy() -> None: ...
@finding("the matrix product's, by the same units")
def matrix_product_units() -> None: ...
