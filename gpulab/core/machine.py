"""A device as torch describes it, and what a machine has for the lab: the answers of the two
probes.
"""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

import msgspec

from gpulab.core.findings import Finding
from gpulab.core.values import Amount, Capability, Count, Line, Name

COUNTERS_FIX = (
    "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, or CAP_SYS_ADMIN"
)
"""What a driver that keeps counters from users needs."""


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """`kind` is cpu or cuda. What follows `l2_bytes` is of a GPU; 0 where torch does not say."""

    kind: Name
    name: Line
    uuid: Line | None = None
    threads: Count = 1
    memory_bytes: Count = 0
    l2_bytes: Count = 0
    """Of a CPU the last-level cache."""
    capability: Capability | None = None
    """Compute capability, such as 9.0."""
    sms: Count = 0
    sm_mhz: Amount = 0.0
    """The highest clock of the SMs."""
    memory_mhz: Amount = 0.0
    bus_bits: Count = 0

    @property
    def on_gpu(self) -> bool:
        return self.kind == "cuda"


class TorchProbe(msgspec.Struct, frozen=True, kw_only=True):
    """A probe of the machine by torch. `problem` keeps it from any use, `cuda_error` is torch's
    word on its CUDA.
    """

    torch: str | None = None
    cuda: str | None = None
    devices: tuple[Device, ...] = ()
    capabilities: tuple[str, ...] = ()
    """Of each device: the compute capability of a GPU, the vector instructions of a CPU."""
    problem: Finding | None = None
    cuda_error: str | None = None


class DriverProbe(msgspec.Struct, frozen=True, kw_only=True):
    """A report of the driver's library: its version and devices, or the `problem` that keeps it
    from answering.
    """

    version: str | None = None
    devices: tuple[str, ...] = ()
    problem: Finding | None = None
    fix: str = ""
    """What mends the problem, where it is one of a GPU that is there."""
    present: bool = True
    gpm: tuple[bool, ...] = ()
    """Of each device whether it is sampled by NVML's GPM."""


class CheckStatus(StrEnum):
    """MISSING is less than there could be; BROKEN is there and does not work."""

    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


class MachineCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the machine: what is there, what fixing it would enable, and the command that
    fixes it.
    """

    schema: str = "gpulab.check/2"
    name: str
    status: CheckStatus
    result: str
    enables: str | None = None
    fix: str | None = None


def cpu_name() -> str:
    """Return the name of the CPU, as the system says it."""
    found = _in_file("/proc/cpuinfo", r"^model name\s*:\s*(.+)$")
    return found.strip() if found else platform.machine()


def driver_version() -> str | None:
    """Return the version of NVIDIA's driver; None where it has none."""
    return _in_file("/proc/driver/nvidia/version", r"\s(\d+\.\d+(?:\.\d+)?)\s")


def _in_file(path: str, pattern: str) -> str | None:
    with suppress(OSError):
        match = re.search(pattern, Path(path).read_text(errors="replace"), re.MULTILINE)
        return match.group(1) if match else None
    return None
