"""What telemetry can say: its fields with their units and scales, the clock-event reasons, and what they invalidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import zip_longest
from operator import or_
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.model.events import Soaked, Telemetry

RATE_HZ = 5
PROCESSES_S = 2.0
PERCENT = 100.0
POWER_CAP = 0x4
SLOWED = 0x8 | 0x20 | 0x40 | 0x80
"""Reasons that no result survives: hardware slowdown, software and hardware thermal, power brake."""
STALE_S = 3 / RATE_HZ
_AVERAGED, _AVERAGED_S = ("busy", "power_average"), 1.0
"""Fields that the driver averages over as much as a second: before that they still hold what ran before."""
COUNTERS_LAG_S = 0.1
"""GPM hands out counters that are up to this old: a reading just after a change still shows what was before."""


@dataclass(frozen=True)
class Field:
    """A column of telemetry. `top`: the end of its fixed scale; None where the device's own limit is."""

    label: str
    unit: str
    top: float | None = None


FIELDS = {
    "sm": Field("SM", "%", PERCENT),
    "occupancy": Field("occupancy", "%", PERCENT),
    "tensor": Field("tensor", "%", PERCENT),
    "dram": Field("DRAM", "%", PERCENT),
    "fp64": Field("FP64", "%", PERCENT),
    "fp32": Field("FP32", "%", PERCENT),
    "fp16": Field("FP16", "%", PERCENT),
    "busy": Field("busy", "%", PERCENT),
    "pcie_tx": Field("PCIe out", "B/s"),
    "pcie_rx": Field("PCIe in", "B/s"),
    "nvlink_tx": Field("NVLink out", "B/s"),
    "nvlink_rx": Field("NVLink in", "B/s"),
    "power": Field("power", "W"),
    "power_average": Field("power 1 s", "W"),
    "energy": Field("energy", "J"),
    "sm_clock": Field("SM clock", "MHz"),
    "memory_clock": Field("memory clock", "MHz"),
    "temperature": Field("temperature", "C", PERCENT),
    "memory_used": Field("memory", "B"),
    "reasons": Field("clocks", ""),
    "processes": Field("processes", ""),
    "worker_cpu": Field("worker CPU", "%", PERCENT),
    "machine_cpu": Field("machine CPU", "%", PERCENT),
    "rss": Field("RSS", "B"),
    "switches": Field("preempted", "/s"),
    "frequency": Field("CPU clock", "MHz"),
}
REASONS = {
    0x4: ("P", "power cap"),
    0x8: ("H", "hardware slowdown"),
    0x20: ("T", "thermal slowdown"),
    0x40: ("T", "thermal slowdown by the hardware"),
    0x80: ("B", "power brake"),
    0x10: ("S", "sync boost"),
    0x2: ("A", "application clocks"),
    0x1: ("-", "idle"),
}


def words(reasons: int) -> str:
    """The reasons of a sample in words."""
    return ", ".join(dict.fromkeys(word for bit, (_, word) in REASONS.items() if reasons & bit))


def letters(reasons: int | None) -> str:
    """One letter each of what holds the clocks back; ok where nothing does."""
    if reasons is None:
        return "n/a"
    found = "".join(dict.fromkeys(letter for bit, (letter, _) in REASONS.items() if reasons & bit & (SLOWED | 0x14)))
    return found or "ok"


@dataclass(frozen=True)
class Window:
    """A stretch of time whose pairs cannot be believed, and why."""

    start: float
    end: float
    why: str


def invalid_windows(samples: Sequence[Telemetry]) -> list[Window]:
    """Around each reading of a slowdown, or of another process on the GPU: from the one before to the one after."""
    read = [one for one in samples if one.reasons is not None]
    found = [
        Window(one.since, after.t if after else one.t + 1 / RATE_HZ, words(slowed))
        for one, after in zip_longest(read, read[1:])
        if (slowed := (one.reasons or 0) & SLOWED)
    ]
    looked = [one for one in samples if one.others is not None]
    found += [
        Window(
            one.since if one.others_since is None else one.others_since,
            after.t if after else one.t + PROCESSES_S,
            f"another process on the GPU ({', '.join(one.others)})",
        )
        for one, after in zip_longest(looked, looked[1:])
        if one.others
    ]
    return _merged(found)


def _merged(windows: list[Window]) -> list[Window]:
    """Windows that overlap for the same reason, as one."""
    found: dict[str, list[Window]] = {}
    for one in windows:
        same = found.setdefault(one.why, [])
        if same and one.start <= same[-1].end:
            same[-1] = Window(same[-1].start, max(same[-1].end, one.end), one.why)
        else:
            same.append(one)
    return [one for same in found.values() for one in same]


@dataclass(frozen=True)
class Alone:
    """Means over a variant's soak, by field; `energy_j` per step; None where nothing was read."""

    means: dict[str, float]
    energy_j: float | None
    samples: int
    reasons: int | None


def while_alone(samples: Sequence[Telemetry], soak: Soaked) -> Alone:
    """What was read while one variant ran alone: only samples whose whole stretch lies within it count."""
    begin = soak.started + COUNTERS_LAG_S
    inside = [one for one in samples if one.since >= begin and one.t <= soak.ended]
    names = {name for one in inside for name in one.values}
    late = [one for one in inside if one.since >= soak.started + _AVERAGED_S]
    means = {}
    for name in names:
        values = [one.values[name] for one in (late if name in _AVERAGED else inside) if name in one.values]
        if values:
            means[name] = fmean(values)
    read = [one.reasons for one in inside if one.reasons is not None]
    counted = [(one.t, one.values["energy"]) for one in inside if "energy" in one.values]
    energy = None
    if len(counted) > 1 and counted[-1][1] > counted[0][1]:
        power = (counted[-1][1] - counted[0][1]) / (counted[-1][0] - counted[0][0])
        energy = power * (soak.ended - soak.started) / soak.steps
    means.pop("energy", None)
    return Alone(means, energy, len(inside), reduce(or_, read) if read else None)
