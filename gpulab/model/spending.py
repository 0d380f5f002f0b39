"""From the windows of a variant to its goodput, as results have it."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.model.events import Profiled
from gpulab.model.result import Goodput, Time
from gpulab.model.roofline import Point
from gpulab.model.state import RunState, VariantState

_MOST_OVERHEAD = 0.1
_MOST_ROWS = 40


def goodput_of(state: RunState, one: VariantState, time: Time | None, placed: Point | None) -> Goodput | None:
    """None where neither marks nor a profiler had anything to say."""
    whole = sum(one.phases.values())
    phases = {name: seconds / whole for name, seconds in one.phases.items()} if whole else {}
    if one.profiled is None:
        return Goodput(phases=phases) if phases else None
    found = one.profiled
    partition, steps = found.partition, found.steps
    # The step's least time by its roofs; the fraction of the roof is this over the measured time.
    cold = state.request is not None and state.request.cache == "cold"  # it was profiled with warm ones
    ideal_s = placed.fraction * time.median if placed and time and not cold else None
    useful_s = partition.seconds.get("useful", 0.0) / steps
    on_gpu = state.device is not None and state.device.kind == "cuda"
    blind = on_gpu and not partition.on_device
    why = ["nothing was recorded of the device: this is the host's time"] * blind + _doubts(found)
    return Goodput(
        phases=phases,
        goodput=partition.goodput,
        partition=partition.shares,
        marked=partition.marked,
        efficiency=ideal_s / useful_s if ideal_s and useful_s else None,
        product=ideal_s * steps / partition.window_s if ideal_s else None,
        items_per_s=one.built.items / time.median if one.built and time else None,
        overhead=_overhead(found),
        reliable=found.same and not blind,
        why="; ".join(why) or None,
        operations=[
            replace(row, calls=row.calls / steps, self_s=row.self_s / steps) for row in found.operations[:_MOST_ROWS]
        ],
        steps=steps,
        peak_bytes=found.peak_bytes,
        trace=found.trace,
    )


def _overhead(of: Profiled) -> float:
    return of.profiled_s / of.plain_s - 1 if of.plain_s else 0.0


def _doubts(of: Profiled) -> list[str]:
    """Why a partition must not be believed as it stands."""
    found = [] if of.same else ["two recordings hold different operations: the partition is unreliable"]
    if (overhead := _overhead(of)) > _MOST_OVERHEAD:
        found.append(f"the profiler makes its step {overhead:.0%} longer: small parts look larger than they are")
    return found
