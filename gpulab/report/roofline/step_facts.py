"""What the events of a run say of one step of a variant: the evidence for what limits it."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.analysis.ceilings import RoofSet
from gpulab.analysis.evidence import DeviceCounters, StepFacts
from gpulab.protocol.ceiling import DERIVED, MEMORY
from gpulab.protocol.jobs import Measure
from gpulab.protocol.partition import WAITING
from gpulab.protocol.statuses import Cache, Clock
from gpulab.protocol.telemetry_fields import PERCENT, POWER_CAP
from gpulab.report.state import RunState
from gpulab.report.variant_state import VariantState

_BUSY = ("useful", "other busy", "communication", "copies")
"""The parts of a profile in which the device works."""


def step_facts(
    state: RunState, variant: VariantState, roofs: RoofSet, step_s: float, clocks: Mapping[str, float]
) -> StepFacts:
    """What the events of a run say of one step of a variant."""
    built, job, counted = variant.built, state.timed_job, variant.counted
    assert built is not None
    assert job is not None
    on_gpu = state.device is not None and state.device.on_gpu
    device_s = _device_s(variant, clocks)
    waiting, launching = _waiting(state, variant, step_s, device_s)
    one_thread = not on_gpu and state.device is not None and state.device.threads == 1
    return StepFacts(
        seconds=step_s,
        bytes=built.bytes,
        flops=built.flops,
        dtype=built.dtype,
        launches=counted.operations if counted else None,
        on_gpu=on_gpu,
        waiting=waiting if on_gpu else None,
        launching=launching,
        device_s=device_s,
        counters=_counters(state, variant, device_s or step_s),
        dram_bytes=dram_bytes_per_step(state, variant, roofs),
        contention=variant.contention if one_thread else None,
        faults=None if on_gpu else _faults_per_step(variant),
        strided=counted.strided_bytes / counted.operand_bytes if counted and counted.operand_bytes else None,
        cache_bytes=_cache_bytes(state),
        cache_seen=bool(state.ceilings and state.ceilings.cache_bytes is not None),
        hot=job.cache == Cache.HOT,
        roof=job.roof if isinstance(job, Measure) else None,
        waiting_phase=_waiting_phase(variant),
    )


def dram_bytes_per_step(state: RunState, variant: VariantState, roofs: RoofSet) -> float | None:
    """Bytes a step between the device and its memory, by the share of its bandwidth that the device counted."""
    solo, job = variant.solo_run, state.timed_job
    nominal = next(
        (ceiling for ceiling in roofs.ceilings if ceiling.roof == MEMORY and ceiling.source == DERIVED), None
    )
    means = state.telemetry.solo_means(variant.info.name)
    if solo is None or means is None or nominal is None or (job is not None and job.cache == Cache.COLD):
        return None
    share = means.means.get("dram")
    if share is None:
        return None
    counted = share / PERCENT * nominal.best * (solo.ended - solo.started)
    return max(0.0, counted - solo.restored_bytes) / solo.steps


def _waiting_phase(variant: VariantState) -> tuple[str, float] | None:
    """The longest of the phases that wait by their name, and its share; None where there is none."""
    seconds = variant.phases.seconds if variant.phases else {}
    longest = max(WAITING & seconds.keys(), key=lambda name: seconds[name], default=None)
    return (longest, seconds[longest] / sum(seconds.values())) if longest and seconds[longest] else None


def _cache_bytes(state: RunState) -> int:
    """What the last-level cache holds for this run: as it was seen, else as the system reports.

    A virtual machine reports the cache of its whole socket, and gets a slice of it.
    """
    if state.ceilings and state.ceilings.cache_bytes is not None:
        return state.ceilings.cache_bytes
    return state.device.l2_bytes if state.device else 0


def _device_s(variant: VariantState, clocks: Mapping[str, float]) -> float | None:
    """The device's own time of a step; None where its clock has gaps between launches in it."""
    device = variant.other_clocks.get(Clock.DEVICE)
    return None if device and device.exposed else clocks.get(Clock.DEVICE)


def _waiting(
    state: RunState, variant: VariantState, step_s: float, device_s: float | None
) -> tuple[float | None, float | None]:
    """(share of a step in which the device does nothing, the part of it in which the host starts operations).

    By the profile where there is one: kernels take as long under it, and what is left of the step was idle.
    """
    job, profiled = state.timed_job, variant.profiled
    if profiled and profiled.repeatable and profiled.partition.on_device and job and job.cache == Cache.HOT:
        parts = profiled.partition.seconds
        busy_s = sum(parts.get(name, 0.0) for name in _BUSY) / profiled.steps
        idle_s = sum(seconds for name, seconds in parts.items() if name not in _BUSY)
        waiting = max(0.0, 1 - busy_s / step_s)
        return waiting, waiting * parts.get("launch-bound", 0.0) / idle_s if idle_s else 0.0
    if job and job.clock == Clock.DEVICE:
        return (None if device_s is None else 0.0), None
    return (None if device_s is None else max(0.0, 1 - device_s / step_s)), None


def _counters(state: RunState, variant: VariantState, device_s: float) -> DeviceCounters | None:
    """What the device counted in the solo run, over its own time; None where it counted nothing."""
    solo, means = variant.solo_run, state.telemetry.solo_means(variant.info.name)
    cold = state.timed_job is not None and state.timed_job.cache == Cache.COLD  # flushing is most of such a run
    if solo is None or means is None or cold or state.device is None or not state.device.on_gpu:
        return None
    longer = max(1.0, solo.time_s / device_s)
    started = state.telemetry.started
    shares = {
        name: min(1.0, means.means[name] / PERCENT * longer)
        for name in ("sm", "occupancy", "tensor", "fp64", "fp32", "fp16", "dram")
        if name in means.means
    }
    power = means.means.get("power")
    if not shares and power is None:
        return None
    return DeviceCounters(
        **shares,
        power=power,
        limit=started.limits.get("power") if started else None,
        capped=bool(means.reasons and means.reasons & POWER_CAP),
    )


def _faults_per_step(variant: VariantState) -> float | None:
    """Page faults of a step in its timed blocks."""
    steps = variant.calibrated.steps_per_block if variant.calibrated else 0
    return variant.faults / variant.blocks / steps if variant.blocks and steps else None
