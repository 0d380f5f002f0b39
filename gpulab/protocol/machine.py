"""What a machine has for the lab: the answers of the two probes, and the checks made of them."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding


class TorchProbe(msgspec.Struct, frozen=True, kw_only=True):
    """What torch makes of the machine. `problem` keeps it from any use, `cuda_error` is torch's word on its CUDA."""

    torch: str | None = None
    cuda: str | None = None
    devices: tuple[Device, ...] = ()
    capabilities: tuple[str, ...] = ()
    """Of each device: the compute capability of a GPU, the vector instructions of a CPU."""
    problem: Finding | None = None
    cuda_error: str | None = None


class DriverProbe(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver's library reports: its version and devices, or the `problem` that keeps it from answering."""

    version: str | None = None
    devices: tuple[str, ...] = ()
    problem: Finding | None = None
    present: bool = True


class CheckStatus(StrEnum):
    """MISSING is less than there could be; BROKEN is there and does not work."""

    OK = "ok"
    MISSING = "missing"
    BROKEN = "broken"


class MachineCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One part of the machine: what is there, what fixing it would enable, and the command that fixes it."""

    name: str
    status: CheckStatus
    result: Finding
    enables: str | None = None
    """The code of what works once it is fixed."""
    fix: Finding | None = None
