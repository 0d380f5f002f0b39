"""A variant's declared work held against what was measured: its place on the roofline, and whether the work is true."""

from __future__ import annotations

from collections import Counter

from gpulab.model.bound import OVER, Facts
from gpulab.model.ceilings import CACHE, DERIVED, MEMORY, UNSTEADY, Roofs
from gpulab.model.datasheet import ceilings_of
from gpulab.model.doubts import clocks_of
from gpulab.model.goodput import WAITS
from gpulab.model.result import RunResult, Time
from gpulab.model.roofline import Point, Roofline, point_of
from gpulab.model.state import RunState, VariantState
from gpulab.model.telemetry import PERCENT, while_alone

DECLARED, COUNTED = "declared", "counted"
_AGREE = 0.2
_FLOPS_AGREE = 0.1
_MOST_ARROWS = 2


def roofs_of(state: RunState) -> Roofs | None:
    """Everything known to limit the run's device; None where none was asked for."""
    if state.request is None or state.request.ceilings == "none" or state.device is None:
        return None
    measured = state.ceilings.ceilings if state.ceilings else ()
    return Roofs((*measured, *ceilings_of(state.device)))


def point(state: RunState, one: VariantState, roofs: Roofs | None, time: Time | None) -> Point | None:
    """Where a variant stands; None where its work is not declared, or nothing was measured."""
    built = one.built
    if roofs is None or time is None or built is None or not time.median:
        return None
    request = state.request
    dram = dram_bytes(state, one, roofs)
    cold = request is not None and request.cache == "cold"
    on_device = request is not None and request.clock == "device"
    facts = Facts(
        seconds=time.median,
        bytes=built.bytes,
        flops=built.flops,
        dtype=built.dtype,
        launches=one.counted.operations if one.counted else None,
        waiting=None if on_device or _exposed(one) else _waiting(clocks_of(state, one, time)),
        on_device=on_device,
        dram_bytes=dram,
        cache_bytes=_cache_bytes(state),
        cache_seen=bool(state.ceilings and state.ceilings.cache_bytes is not None),
        hot=not cold,
        roof=request.roof if request else None,
        wait=_wait(one),
    )
    agree = dram is not None and built.bytes and abs(dram / built.bytes - 1) <= _AGREE
    return point_of(one.info.name, facts, roofs, low_s=time.low, high_s=time.high, work=COUNTED if agree else DECLARED)


def chart(run: RunResult) -> Roofline | None:
    """The run's roofline, with an arrow to each variant from the one that it is compared with last."""
    if run.ceilings is None:
        return None
    points = [one.roofline for one in run.variants if one.roofline]
    places = {one.variant: index for index, one in enumerate(points)}
    against = {one.variant: one.against for one in run.comparisons}
    tangled = {one for one, arrows in Counter(against.values()).items() if arrows > _MOST_ARROWS}
    arrows = [
        (places[before], places[after])
        for after, before in against.items()
        if before in places and after in places and before not in tangled
    ]
    return Roofline(run.ceilings.ceilings, points, arrows)


def dram_bytes(state: RunState, one: VariantState, roofs: Roofs) -> float | None:
    """Bytes a step between the device and its memory, by the share of its bandwidth that the device counted."""
    full = next((each for each in roofs.ceilings if each.roof == MEMORY and each.source == DERIVED), None)
    if one.soaked is None or full is None or (state.request and state.request.cache == "cold"):
        return None
    share = while_alone(state.telemetry, one.soaked).means.get("dram")
    if share is None:
        return None
    counted = share / PERCENT * full.best * (one.soaked.ended - one.soaked.started)
    return max(0.0, counted - one.soaked.restored_bytes) / one.soaked.steps


def disagreements(state: RunState) -> list[str]:
    """Where what was declared is not what was counted, and ceilings that cannot be believed."""
    roofs = roofs_of(state)
    if roofs is None:
        return []
    found = []
    kinds = {one.built.dtype or "fp32" for one in state.variants.values() if one.built}
    named = (MEMORY, CACHE, state.request.roof if state.request else None)
    whole = state.request is not None and state.request.ceilings == "all"
    unsteady = [one.name for one in roofs.unsteady() if whole or one.roof in named or one.kind in kinds]
    if unsteady:
        why = f"their best is over {UNSTEADY:g}x their median, on a machine that was disturbed"
        found.append(f"not used as ceilings: {', '.join(unsteady)}: {why}")
    for name, one in state.variants.items():
        built, counted = one.built, one.counted
        if built and built.flops and counted and counted.flops:
            off = built.flops / counted.flops - 1
            if abs(off) > _FLOPS_AGREE:
                found.append(
                    f"{name}: declares {built.flops:.4g} FLOPs a step, and torch counts {counted.flops:.4g} in its "
                    "products and convolutions"
                )
        dram = dram_bytes(state, one, roofs)
        if dram and built and built.bytes and dram > (OVER + _AGREE) * built.bytes:
            more = f"{dram / built.bytes:.1f}x of the bytes that it declares, which are the least it must"
            found.append(f"{name}: moves {more}: by the device's own counters")
    return found


def _wait(one: VariantState) -> tuple[str, float] | None:
    """The longest of the phases that wait by their name, and its share; None where nothing is marked so."""
    seconds = one.phases.seconds if one.phases else {}
    longest = max(WAITS & seconds.keys(), key=lambda name: seconds[name], default=None)
    return (longest, seconds[longest] / sum(seconds.values())) if longest and seconds[longest] else None


def _cache_bytes(state: RunState) -> int:
    """What the last-level cache holds for this run: as it was seen, else as the system says.

    A virtual machine reports the cache of its whole socket, and gets a slice of it.
    """
    if state.ceilings and state.ceilings.cache_bytes is not None:
        return state.ceilings.cache_bytes
    return state.device.l2_bytes if state.device else 0


def _exposed(one: VariantState) -> bool:
    """Whether the device's own time has the gaps between launches in it, and so does not tell waiting from working."""
    return one.other_clock is not None and one.other_clock.exposed


def _waiting(clocks: dict[str, float]) -> float | None:
    """Share of the wall time that the device's own clock does not have."""
    wall, device = clocks.get("wall"), clocks.get("device")
    return max(0.0, 1 - device / wall) if wall and device else None
