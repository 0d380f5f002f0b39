"""From the windows of a variant to its goodput, as results have it."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.model.ceilings import LINKS
from gpulab.model.events import Phases, Profiled
from gpulab.model.result import Goodput, Time
from gpulab.model.roofline import Point
from gpulab.model.state import RunState, VariantState

_MOST_OVERHEAD = 0.1
_MOST_ROWS = 40


def goodput_of(state: RunState, one: VariantState, time: Time | None, placed: Point | None) -> Goodput | None:
    """None where neither marks nor a profiler had anything to say."""
    phases, ran = _phases(one.phases)
    if one.profiled is None:
        return Goodput(phases=phases, ran=ran) if phases else None
    found, request = one.profiled, state.request
    partition, steps = found.partition, found.steps
    # The step's least time by its roofs; the fraction of the roof is this over the measured time.
    cold = request is not None and request.cache == "cold"  # it was profiled with warm ones
    ideal_s = placed.fraction * time.median if placed and time and not cold else None
    on_link = request is not None and request.roof in LINKS  # which no useful time is spent on
    useful_s = partition.seconds.get("useful", 0.0) / steps
    on_gpu = state.device is not None and state.device.kind == "cuda"
    blind = on_gpu and not partition.on_device
    right = one.checked is not None and one.checked.ok
    overhead = found.profiled_s / plain_s - 1 if (plain_s := _plain_s(state, found, time)) else 0.0
    why = ["nothing was recorded of the device: this is the host's time"] * blind + _doubts(found, overhead)
    return Goodput(
        phases=phases,
        ran=ran,
        goodput=partition.goodput,
        partition=partition.shares,
        marked=partition.marked,
        efficiency=ideal_s / useful_s if ideal_s and useful_s and not on_link else None,
        product=ideal_s * steps / partition.window_s if ideal_s else None,
        hidden=max(0.0, 1 - partition.seconds["copies"] / partition.copied_s) if partition.copied_s else None,
        items_per_s=one.built.items / time.median if one.built and time and right else None,
        overhead=overhead,
        reliable=found.same and not blind,
        why="; ".join(why) or None,
        operations=[
            replace(row, calls=row.calls / steps, self_s=row.self_s / steps) for row in found.operations[:_MOST_ROWS]
        ],
        steps=steps,
        peak_bytes=found.peak_bytes,
        trace=found.trace,
    )


def _phases(of: Phases | None) -> tuple[dict[str, float], dict[str, float]]:
    """The share of each mark, and how much of it the thread ran."""
    whole = sum(of.seconds.values()) if of else 0.0
    if of is None or not whole:
        return {}, {}
    ran = {name: seconds / of.seconds[name] for name, seconds in of.ran.items() if of.seconds.get(name)}
    return {name: seconds / whole for name, seconds in of.seconds.items()}, ran


def _plain_s(state: RunState, of: Profiled, time: Time | None) -> float:
    """Seconds of a step without the profiler: those of its own process, or of the run's where that is as it was timed.

    CUPTI, once started, stays attached to a process and costs each step 10 to 20 %.
    """
    request, device = state.request, state.device
    if time is None or request is None or device is None or device.kind != "cuda":
        return of.plain_s
    alike = request.clock == "wall" and request.cache == "hot"
    return min(of.plain_s, time.median) if alike else of.plain_s


def _doubts(of: Profiled, overhead: float) -> list[str]:
    """Why a partition must not be believed as it stands."""
    found = [] if of.same else ["two recordings hold different operations: the partition is unreliable"]
    if overhead > _MOST_OVERHEAD:
        found.append(f"the profiler makes its step {overhead:.0%} longer: small parts look larger than they are")
    return found
