"""The driver's library: opened, a device looked up in it, and its faults as findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pynvml

from gpulab.protocol.finding import Finding, finding

LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)
NO_DRIVER = "no_driver"
_UNSUPPORTED = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "not_supported",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "not_in_driver",
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: "not_in_driver",
    pynvml.NVML_ERROR_NO_PERMISSION: "not_permitted",
}
_FAULTS = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: NO_DRIVER,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "driver_not_loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver_was_updated",
    pynvml.NVML_ERROR_GPU_IS_LOST: "gpu_lost",
    pynvml.NVML_ERROR_RESET_REQUIRED: "gpu_needs_reset",
    pynvml.NVML_ERROR_NO_PERMISSION: "no_driver_permission",
    pynvml.NVML_ERROR_NOT_FOUND: "no_such_gpu",
    pynvml.NVML_ERROR_INVALID_ARGUMENT: "no_such_gpu",
}


class NoGpuError(Exception):
    """There is no GPU to sample."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


def fault(error: pynvml.NVMLError) -> Finding:
    """What an error of the driver means."""
    code = _FAULTS.get(error.value)
    return finding(code) if code else finding("driver_error", message=str(error))


def unsupported(error: pynvml.NVMLError) -> str | None:
    """The code of why a field will never have a value, None where the error may pass."""
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
        raise NoGpuError(fault(error)) from None
