"""The driver's library: opened, a device found in it, and its faults in words that say what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
_UNSUPPORTED = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "not supported by this device",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "not in this driver",
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "not in this driver",
    pynvml.NVML_ERROR_NO_PERMISSION: "not permitted",
}
_WORDS = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no NVIDIA driver found: telemetry shows the host only",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "the NVIDIA driver is not loaded: telemetry shows the host only",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "the driver was updated: reboot, or reload its module",
    pynvml.NVML_ERROR_GPU_IS_LOST: "GPU lost: the kernel's log (dmesg) has its Xid line",
    pynvml.NVML_ERROR_RESET_REQUIRED: "the GPU needs a reset: the kernel's log (dmesg) has its Xid line",
    pynvml.NVML_ERROR_NO_PERMISSION: "no permission to talk to the NVIDIA driver",
    pynvml.NVML_ERROR_NOT_FOUND: "the driver knows no such GPU",
    pynvml.NVML_ERROR_INVALID_ARGUMENT: "the driver knows no such GPU",
}


class NoGpuError(Exception):
    """There is no GPU to sample; the message is for the user."""


def absent(error: NoGpuError) -> bool:
    """Whether there is no driver at all, rather than one that fails."""
    return str(error) == _WORDS[pynvml.NVML_ERROR_LIBRARY_NOT_FOUND]


def explain(error: pynvml.NVMLError) -> str:
    """What the user should read."""
    return _WORDS.get(error.value, f"the NVIDIA driver says: {error}")


def unsupported(error: pynvml.NVMLError) -> str | None:
    """Why a field will never come, None where the error may pass."""
    return _UNSUPPORTED.get(error.value)


def connect() -> None:
    """Load the driver's library. NoGpuError."""
    call(pynvml.nvmlInit)


def find(wanted: str) -> Any:
    """The device by its index or UUID, never by torch's index: orders differ. NoGpuError."""
    if wanted.isdigit():
        return call(pynvml.nvmlDeviceGetHandleByIndex, int(wanted))
    try:
        return call(pynvml.nvmlDeviceGetHandleByUUID, wanted)
    except NoGpuError:
        if not wanted.startswith("GPU-"):
            raise
        return call(pynvml.nvmlDeviceGetHandleByUUID, f"MIG-{wanted[4:]}")  # torch does not tell which it is


def same(uuid: str, other: str | None) -> bool:
    """Whether two UUIDs name one device, whatever kind each was taken for."""
    return other is not None and uuid.partition("-")[2] == other.partition("-")[2]


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call without which there is nothing to show. NoGpuError."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise NoGpuError(explain(error)) from None
