"""GPU performance monitoring (Hopper and newer): what SMs, tensor cores and memory did between two samples."""

from __future__ import annotations

from typing import Any

import pynvml

_MIB = 2**20
_PERCENT = {"sm": 2, "occupancy": 3, "tensor": 5, "dram": 10, "fp64": 11, "fp32": 12, "fp16": 13}
_RATES = {"pcie_tx": 20, "pcie_rx": 21, "nvlink_rx": 60, "nvlink_tx": 61}
METRICS = {**_PERCENT, **_RATES}
SHORTEST_S = 0.1
"""Two samples closer than this have nothing new between them."""


class Gpm:
    """Two sample buffers in turn, and one request that is prepared once. NVMLError where the device has no GPM."""

    def __init__(self, handle: Any) -> None:
        # A MIG slice is sampled through its parent.
        self._handle, self._instance = whole_device(handle), _gpu_instance(handle)
        self.failed: dict[str, int] = {}
        """Metrics that the last request had no value for, with the driver's code."""
        if not pynvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        self._last, self._next = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        self._sample(self._last)  # support may be claimed and sampling fail all the same, on a virtual GPU
        self._request = pynvml.c_nvmlGpmMetricsGet_t()
        self._request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        self._request.numMetrics = len(METRICS)
        for place, number in enumerate(METRICS.values()):
            self._request.metrics[place].metricId = number

    def sample(self) -> dict[str, float]:
        """The metrics since the last call, by field: percent, and bytes per second. NVMLError."""
        self._sample(self._next)
        self._request.sample1, self._request.sample2 = self._last, self._next
        pynvml.nvmlGpmMetricsGet(self._request)
        self._last, self._next = self._next, self._last
        values = {}
        self.failed = {}
        for place, name in enumerate(METRICS):
            metric = self._request.metrics[place]
            if metric.nvmlReturn == pynvml.NVML_SUCCESS:
                values[name] = metric.value * (_MIB if name in _RATES else 1)
            else:
                self.failed[name] = metric.nvmlReturn
        return values

    def _sample(self, buffer: Any) -> None:
        if self._instance is None:
            pynvml.nvmlGpmSampleGet(self._handle, buffer)
        else:
            pynvml.nvmlGpmMigSampleGet(self._handle, self._instance, buffer)


def whole_device(handle: Any) -> Any:
    """The GPU itself: of a MIG slice, its parent, which has the clocks and the power."""
    if _gpu_instance(handle) is None:
        return handle
    return pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)


def _gpu_instance(handle: Any) -> int | None:
    """The number of a MIG slice within its GPU; None for a whole one."""
    try:
        if not pynvml.nvmlDeviceIsMigDeviceHandle(handle):
            return None
        return int(pynvml.nvmlDeviceGetGpuInstanceId(handle))
    except (pynvml.NVMLError, AttributeError):
        return None
