"""What a machine has for the lab: the answer of the worker's probe, and the findings made of it."""

from __future__ import annotations

import msgspec

from gpulab.model.request import Device


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What torch makes of the machine. `error` says why it cannot be used at all, `cuda_error` why its CUDA cannot."""

    torch: str | None = None
    cuda: str | None = None
    devices: tuple[Device, ...] = ()
    capabilities: tuple[str, ...] = ()
    """Of each device: the compute capability of a GPU, the vector instructions of a CPU."""
    error: str | None = None
    cuda_error: str | None = None
    hangs: bool = False
    """No answer came: torch, or the driver below it, never returned."""


class DriverCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What the driver's library says: its version and devices, or `why` it says nothing."""

    version: str | None = None
    devices: tuple[str, ...] = ()
    why: str | None = None
    present: bool = True


class Finding(msgspec.Struct, frozen=True):
    """`status`: ok, missing (less than it could be), broken (there, and not working)."""

    name: str
    status: str
    found: str
    enables: str = ""
    """What mending it would make possible."""
    mend: str = ""
    """The one command, or the one step, that mends it."""
