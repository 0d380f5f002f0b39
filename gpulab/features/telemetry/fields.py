"""The fields of telemetry with their units, the driver's clock-event reasons, and the rates of
sampling.
"""

from __future__ import annotations

from dataclasses import dataclass

RATE_HZ = 5
PROCESSES_S = 2.0
"""How often other processes on the GPU are looked for: each look holds the driver for
milliseconds.
"""
PERCENT = 100.0
POWER_CAP = 0x4
SLOWED = 0x8 | 0x20 | 0x40 | 0x80
"""Reasons that no result survives: hardware slowdown, software and hardware thermal slowdown, power
brake.
"""
HELD_BACK = SLOWED | POWER_CAP | 0x10
"""Reasons worth showing: those above, the power cap, and sync boost."""


@dataclass(frozen=True)
class Field:
    """A column of telemetry."""

    label: str
    unit: str


FIELDS = {
    "sm": Field("SM", "%"),
    "occupancy": Field("occupancy", "%"),
    "tensor": Field("tensor", "%"),
    "dram": Field("DRAM", "%"),
    "fp64": Field("FP64", "%"),
    "fp32": Field("FP32", "%"),
    "fp16": Field("FP16", "%"),
    "busy": Field("busy", "%"),
    "pcie_tx": Field("PCIe out", "B/s"),
    "pcie_rx": Field("PCIe in", "B/s"),
    "nvlink_tx": Field("NVLink out", "B/s"),
    "nvlink_rx": Field("NVLink in", "B/s"),
    "power": Field("power", "W"),
    "power_average": Field("power 1 s", "W"),
    "energy": Field("energy", "J"),
    "sm_clock": Field("SM clock", "MHz"),
    "memory_clock": Field("memory clock", "MHz"),
    "temperature": Field("temperature", "C"),
    "memory_used": Field("memory", "B"),
    "reasons": Field("clocks", ""),
    "processes": Field("processes", ""),
    "worker_cpu": Field("worker CPU", "%"),
    "machine_cpu": Field("machine CPU", "%"),
    "rss": Field("RSS", "B"),
    "switches": Field("preempted", "/s"),
    "frequency": Field("CPU clock", "MHz"),
}
"""Every field, in the order in which it is shown."""
CLOCK_REASONS = {
    0x4: ("P", "power cap"),
    0x8: ("H", "hardware slowdown"),
    0x20: ("T", "thermal slowdown"),
    0x40: ("T", "thermal slowdown by the hardware"),
    0x80: ("B", "power brake"),
    0x10: ("S", "sync boost"),
    0x2: ("A", "application clocks"),
    0x1: ("-", "idle"),
}
"""The driver's clock-event reasons by bit: a letter for narrow places, and the name."""
CLOCK_LETTERS = {letter: name for letter, name in reversed(CLOCK_REASONS.values())}
"""What each letter means; of two reasons with one letter the first."""


def reason_names(reasons: int) -> list[str]:
    """The names of the bits that are set."""
    return list(dict.fromkeys(name for bit, (_, name) in CLOCK_REASONS.items() if reasons & bit))


def reason_letters(reasons: int | None) -> str:
    """One letter for each reason that holds the clocks back; ok where none does, n/a where nobody
    could tell.
    """
    if reasons is None:
        return "n/a"
    held = (letter for bit, (letter, _) in CLOCK_REASONS.items() if reasons & bit & HELD_BACK)
    return "".join(dict.fromkeys(held)) or "ok"
