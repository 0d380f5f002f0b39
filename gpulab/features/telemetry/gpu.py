"""One GPU, sampled by the driver's library: every field is a value, or unsupported for a reason, or
not due at this tick.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import psutil
import pynvml

from gpulab.core.finding import Finding, finding
from gpulab.features.telemetry.fields import FIELDS, PROCESSES_S

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
        # torch does not tell which it is
        return call(pynvml.nvmlDeviceGetHandleByUUID, f"MIG-{wanted[4:]}")


def same(uuid: str, other: str | None) -> bool:
    """Whether two UUIDs name one device, whatever kind each was taken for."""
    return other is not None and uuid.partition("-")[2] == other.partition("-")[2]


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call without which there is nothing to show. NoGpuError."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise NoGpuError(fault(error)) from None


_MIB = 2**20
_PERCENT = {"sm": 2, "occupancy": 3, "tensor": 5, "dram": 10, "fp64": 11, "fp32": 12, "fp16": 13}
_RATES = {"pcie_tx": 20, "pcie_rx": 21, "nvlink_rx": 60, "nvlink_tx": 61}
METRICS = {**_PERCENT, **_RATES}
SHORTEST_S = 0.1
"""Two samples closer than this have nothing new between them."""


class Gpm:
    """Two sample buffers in turn, and one request that is prepared once. NVMLError where the device
    has no GPM.
    """

    def __init__(self, handle: Any) -> None:
        # A MIG slice is sampled through its parent.
        self._handle, self._instance = whole_device(handle), _gpu_instance(handle)
        self.failed: dict[str, int] = {}
        """Metrics that the last request had no value for, with the driver's code."""
        if not pynvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        self._last, self._next = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
        # support may be claimed and sampling fail all the same, on a virtual GPU
        self._sample(self._last)
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


def health(handle: Any) -> tuple[dict[str, float], list[Finding]]:
    """(what was read, what is wrong); what the device does not report is left out."""
    queries: dict[str, Callable[[], float]] = {
        "ecc_uncorrected": lambda: pynvml.nvmlDeviceGetTotalEccErrors(
            handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
        ),
        "pcie_generation": lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
        "pcie_generation_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
        "pcie_width": lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
        "pcie_width_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
        "pcie_replays": lambda: pynvml.nvmlDeviceGetPcieReplayCounter(handle),
    }
    values: dict[str, float] = {}
    for name, query in queries.items():
        with suppress(pynvml.NVMLError, AttributeError):
            values[name] = float(query())
    with suppress(pynvml.NVMLError, AttributeError):
        corrected, uncorrected, pending, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
        values |= {"rows_corrected": corrected, "rows_uncorrected": uncorrected}
        values |= {"rows_pending": float(bool(pending)), "rows_failed": float(bool(failed))}
    return values, _problems(values)


class Xids:
    """Errors that the driver reports of the device (Xid) as they come; silent where it reports
    none.
    """

    def __init__(self, handle: Any) -> None:
        self._set: Any = None
        with suppress(pynvml.NVMLError, AttributeError):
            event_set = pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, event_set)
            self._set = event_set

    def take(self) -> list[Finding]:
        """Those since the last call; it never waits."""
        reported: list[Finding] = []
        while self._set is not None:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except (pynvml.NVMLError, AttributeError):
                break  # a timeout: nothing more came
            reported.append(finding("xid", xid=int(event.eventData)))
        return reported


def _problems(values: dict[str, float]) -> list[Finding]:
    problems = []
    if errors := values.get("ecc_uncorrected"):
        problems.append(finding("ecc_errors", count=int(errors)))
    if values.get("rows_failed"):
        problems.append(finding("row_remapping_failed"))
    if values.get("rows_pending"):
        problems.append(finding("row_remapping_pending"))
    # The generation drops to save power and comes back under load; a link that is narrow stays so.
    width, full = values.get("pcie_width"), values.get("pcie_width_max")
    if width and full and width < full:
        problems.append(finding("pcie_narrow", width=int(width), full=int(full)))
    return problems


_SLOW_S = 0.5
_MILLI = 1e-3
_POWER_AVERAGE, _POWER_NOW, _ENERGY = 185, 186, 83
_PCIE_TX, _PCIE_RX = 197, 198
_COUNTERS = {269: 0x20, 270: 0x40, 271: 0x80}
"""Cumulative time under a reason, and the reason's bit: they tell what happened between two
readings.
"""
_TRIES = 10
_OLD_CLIENT = "not_in_client"


class GpuLostError(Exception):
    """Nothing more will come from this GPU."""

    def __init__(self, reason: Finding) -> None:
        super().__init__(reason.code)
        self.reason = reason


class Gpu:
    """Reads one device. `unsupported` has the code of why a field will never have a value.

    `own`: it is the GPU that the worker runs on.
    """

    def __init__(self, handle: Any, worker: int, *, own: bool) -> None:
        self._handle, self._worker, self._own = handle, worker, own
        self.unsupported: dict[str, str] = {}
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._bytes: dict[int, tuple[float, int]] = {}
        self._counters: dict[int, int] = {}
        self._whole = whole_device(handle)
        self._gpm: Gpm | None = None
        self._gpm_at = monotonic()
        try:
            self._gpm = Gpm(handle)
        except pynvml.NVMLError as error:
            self._disable_gpm(unsupported(error) or fault(error).code)
        except AttributeError:
            self._disable_gpm(_OLD_CLIENT)
        self.others: list[str] | None = None

    @property
    def unsupported_fields(self) -> dict[str, str]:
        """Fields that will never have a value, with the code of the reason."""
        return {name: code for name, code in self.unsupported.items() if name in FIELDS}

    def forget(self) -> None:
        """After a pause: what accumulated meanwhile belongs to no reading."""
        self._bytes.clear()
        if self._gpm is not None:
            self._try("gpm", self._gpm.sample)
            self._gpm_at = monotonic()

    def limits(self) -> dict[str, float]:
        """What the scales of the device's own fields end at."""
        queries: dict[str, Callable[[], float]] = {
            "power": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(self._whole) * _MILLI,
            "sm_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(self._whole, pynvml.NVML_CLOCK_SM),
            "memory_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(
                self._whole, pynvml.NVML_CLOCK_MEM
            ),
            "memory_used": lambda: pynvml.nvmlDeviceGetMemoryInfo(self._handle).total,
        }
        limits = {}
        for name, query in queries.items():
            try:
                limits[name] = float(query())
            except pynvml.NVMLError:
                continue
        return limits

    def sample(self) -> tuple[dict[str, float], int | None]:
        """(values by field, clock-event reasons). GpuLostError."""
        values: dict[str, float] = {}
        now = monotonic()
        if self._gpm is not None and now - self._gpm_at > SHORTEST_S:
            values |= self._try("gpm", self._gpm.sample) or {}
            self._gpm_at = now
            if self._gpm is not None:
                for name, error in self._gpm.failed.items():
                    if code := unsupported(pynvml.NVMLError(error)):
                        self.unsupported[name] = code
        values |= self._try("fields", self._fields) or {}
        reasons = self._try("reasons", lambda: _reasons(self._whole))
        since_last = self._try("counters", self._reasons_since_last)
        if since_last is not None:
            reasons = (reasons or 0) | since_last
        if self._is_due("slow", now, _SLOW_S):
            for name, query in _SLOW_FIELDS.items():
                handle = self._handle if name in _OF_A_SLICE else self._whole
                value = self._try(name, lambda query=query, handle=handle: query(handle))  # type: ignore[misc]
                if value is not None:
                    values[name] = value
        self.others = None
        if self._is_due("processes", now, PROCESSES_S):
            self.others = self._try("processes", self._foreign_processes)
        return values, reasons

    def _try(self, name: str, query: Callable[[], Any]) -> Any:
        """The answer, or None: the field is left out now, or for good where it will never come."""
        if name in self.unsupported:
            return None
        try:
            answer = query()
        except AttributeError:
            self.unsupported[name] = _OLD_CLIENT
            return None
        except pynvml.NVMLError as error:
            if error.value in LOST:
                raise GpuLostError(fault(error)) from None
            self._failures[name] = self._failures.get(name, 0) + 1
            code = unsupported(error)
            if code is None and self._failures[name] >= _TRIES:
                code = "keeps_failing"
            if code and name == "gpm":
                self._disable_gpm(code)
            elif code:
                for field in _FIELDS_OF.get(name, (name,)):
                    self.unsupported[field] = code
                self.unsupported[name] = code
            return None
        self._failures.pop(name, None)
        return answer

    def _disable_gpm(self, code: str) -> None:
        self._gpm = None
        self.unsupported |= dict.fromkeys((*METRICS, "gpm"), code)
        for name in ("pcie_tx", "pcie_rx"):  # these come from byte counters then
            del self.unsupported[name]

    def _is_due(self, name: str, now: float, every_s: float) -> bool:
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + every_s
        return True

    def _fields(self) -> dict[str, float]:
        """Power, energy and, without GPM, PCIe bytes: one call, each entry with an error of its
        own.
        """
        ids = [_POWER_NOW, _POWER_AVERAGE, _ENERGY, *(() if self._gpm else (_PCIE_TX, _PCIE_RX))]
        values: dict[str, float] = {}
        for entry in pynvml.nvmlDeviceGetFieldValues(self._whole, ids):
            name = _NAMES[entry.fieldId]
            if entry.nvmlReturn != pynvml.NVML_SUCCESS:
                if code := unsupported(pynvml.NVMLError(entry.nvmlReturn)):
                    self.unsupported[name] = code
                continue
            self.unsupported.pop(name, None)
            is_long = entry.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            number = entry.value.ullVal if is_long else entry.value.uiVal
            if entry.fieldId in (_PCIE_TX, _PCIE_RX):
                rate = self._rate(entry.fieldId, number)
                if rate is not None:
                    values[name] = rate
            else:
                values[name] = number * _MILLI
        return values

    def _rate(self, field: int, count: int) -> float | None:
        now = monotonic()
        before = self._bytes.get(field)
        self._bytes[field] = now, count
        if before is None or count < before[1] or now <= before[0]:
            return None
        return (count - before[1]) / (now - before[0])

    def _reasons_since_last(self) -> int | None:
        """Bits of the reasons whose time grew since the last reading; None where the device does
        not count them.
        """
        bits = None
        for entry in pynvml.nvmlDeviceGetFieldValues(self._whole, list(_COUNTERS)):
            if entry.nvmlReturn != pynvml.NVML_SUCCESS:
                continue
            count = int(entry.value.ullVal)
            bits = bits or 0
            if count > self._counters.get(entry.fieldId, count):
                bits |= _COUNTERS[entry.fieldId]
            self._counters[entry.fieldId] = count
        return bits

    def _foreign_processes(self) -> list[str]:
        """Processes on the GPU that are not the run's."""
        running = {
            process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        }
        own = {os.getpid(), self._worker, *_descendants(self._worker)}
        foreign = sorted(running - own)
        if self._own and not running & own:
            # In a container processes go by their numbers on the host: one of them is the worker.
            return [f"{len(foreign) - 1} more"] if len(foreign) > 1 else []
        return [_process_name(pid) for pid in foreign]


def _descendants(pid: int) -> set[int]:
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.Error:
        return set()


def _process_name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} {pid}"
    except psutil.Error:
        return f"pid {pid}"


_NAMES = {
    _POWER_NOW: "power",
    _POWER_AVERAGE: "power_average",
    _ENERGY: "energy",
    _PCIE_TX: "pcie_tx",
    _PCIE_RX: "pcie_rx",
}
_FIELDS_OF = {"fields": ("power", "power_average", "energy", "pcie_tx", "pcie_rx")}
_OF_A_SLICE = ("memory_used", "busy")


def _reasons(handle: Any) -> int:
    query = getattr(
        pynvml,
        "nvmlDeviceGetCurrentClocksEventReasons",
        pynvml.nvmlDeviceGetCurrentClocksThrottleReasons,
    )
    return int(query(handle))


def _temperature(handle: Any) -> float:
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))
    except (
        AttributeError,
        pynvml.NVMLError_FunctionNotFound,
        pynvml.NVMLError_ArgumentVersionMismatch,
    ):
        # an older driver
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


_SLOW_FIELDS: dict[str, Callable[[Any], float]] = {
    "sm_clock": lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    "memory_clock": lambda handle: float(
        pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)
    ),
    "temperature": _temperature,
    "memory_used": lambda handle: float(pynvml.nvmlDeviceGetMemoryInfo(handle).used),
    "busy": lambda handle: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
}
