"""Fields of telemetry and where they are shown, and rates of sampling."""

from __future__ import annotations

from dataclasses import dataclass

RATE_HZ = 5
PROCESSES_S = 2.0
"""How often other processes on the GPU are looked for: each look takes milliseconds."""
PERCENT = 100.0


@dataclass(frozen=True)
class Field:
    """A quantity that is sampled, and where it is shown."""

    label: str
    unit: str
    short: str = ""
    """Its label where there is little room."""
    column: bool = False
    """Whether the table of solo runs has a column of it."""
    row: int = 0
    """Its place in the panel of the device, 1 being the first; 0 where it has none."""
    host: bool = False
    """Whether it is of the host, not of a GPU."""


_IN_KEYS = {"%": "percent", "B": "bytes", "B/s": "bytes_per_s", "/s": "per_s"}
"""Units that are no part of a key as they are written."""


FIELDS = {
    "sm": Field("SM", "%", column=True, row=1),
    "occupancy": Field("occupancy", "%", short="occ", column=True, row=6),
    "tensor": Field("tensor", "%", column=True, row=2),
    "dram": Field("DRAM", "%", column=True, row=3),
    "fp64": Field("FP64", "%"),
    "fp32": Field("FP32", "%"),
    "fp16": Field("FP16", "%"),
    "busy": Field("busy", "%"),
    "pcie_tx": Field("PCIe out", "B/s"),
    "pcie_rx": Field("PCIe in", "B/s"),
    "nvlink_tx": Field("NVLink out", "B/s"),
    "nvlink_rx": Field("NVLink in", "B/s"),
    "power": Field("power", "W", column=True, row=4),
    "power_average": Field("power 1 s", "W"),
    "energy": Field("energy", "J", column=True),
    "sm_clock": Field("SM clock", "MHz", column=True, row=5),
    "memory_clock": Field("memory clock", "MHz"),
    "temperature": Field("temperature", "C", column=True, row=8),
    "memory_used": Field("memory", "B", row=7),
    "reasons": Field("clocks", ""),
    "processes": Field("processes", ""),
    "worker_cpu": Field("worker CPU", "%", column=True, row=1, host=True),
    "machine_cpu": Field("machine CPU", "%", column=True, row=2, host=True),
    "others_cpu": Field("other work", "%", host=True),
    "rss": Field("RSS", "B", column=True, row=3, host=True),
    "switches": Field("preempted", "/s", column=True, host=True),
    "frequency": Field("CPU clock", "MHz", column=True, host=True),
}
"""Every field, in the order in which it is shown."""


def json_key(name: str) -> str:
    """The key of a field in JSON: its name with its unit."""
    unit = FIELDS[name].unit if name in FIELDS else ""
    return f"{name}_{_IN_KEYS.get(unit, unit.lower())}" if unit else name


def columns(*, host: bool) -> list[str]:
    """Fields that the table of solo runs has columns of."""
    return [name for name, field in FIELDS.items() if field.column and field.host == host]


def rows(*, host: bool) -> list[str]:
    """Fields that the panel of the device has rows of, the most important first."""
    names = [name for name, field in FIELDS.items() if field.row and field.host == host]
    return sorted(names, key=lambda name: FIELDS[name].row)
