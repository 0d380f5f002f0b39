"""One GPU, sampled by NVML: a field has a value, is unsupported, or is not due."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

import psutil
import pynvml

from gpulab.core.findings import Finding
from gpulab.core.machine import DriverProbe
from gpulab.features.telemetry.events import SamplingTarget, Telemetry, TelemetryStarted
from gpulab.features.telemetry.fields import FIELDS, PROCESSES_S
from gpulab.features.telemetry.findings import (
    driver_error,
    driver_not_loaded,
    driver_was_updated,
    ecc_errors,
    gpu_lost,
    gpu_needs_reset,
    keeps_failing,
    no_driver,
    no_driver_permission,
    no_such_gpu,
    not_in_driver,
    not_permitted,
    not_supported,
    pcie_narrow,
    row_remapping_failed,
    row_remapping_pending,
    xid,
)

_MILLI = 1e-3
_PERCENT = {"sm": 2, "occupancy": 3, "tensor": 5, "dram": 10, "fp64": 11, "fp32": 12, "fp16": 13}
_RATES = {"pcie_tx": 20, "pcie_rx": 21, "nvlink_rx": 60, "nvlink_tx": 61}
METRICS = {**_PERCENT, **_RATES}
"""Fields that GPM gives at every tick, with the numbers of its metrics."""
_FIELD_VALUES = {186: "power", 185: "power_average", 83: "energy"}
"""NVML's field values that are read at every tick, in thousandths of the unit."""
_REASON_COUNTERS = {269: 0x20, 270: 0x40, 271: 0x80}
"""Cumulative time under a clock-event reason, which shows what fell between readings."""


def _clock(kind: int) -> Callable[[Any], float]:
    return lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, kind)


def _temperature(handle: Any) -> float:
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))
    except (pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
        # an older driver
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


_SLOW_FIELDS: dict[str, Callable[[Any], float]] = {
    "sm_clock": _clock(pynvml.NVML_CLOCK_SM),
    "memory_clock": _clock(pynvml.NVML_CLOCK_MEM),
    "temperature": _temperature,
    "memory_used": lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).used,
    "busy": lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
}
"""Fields that are read twice a second, by a call each."""

_UNSUPPORTED = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: not_supported.code,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: not_in_driver.code,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: not_in_driver.code,
    pynvml.NVML_ERROR_NO_PERMISSION: not_permitted.code,
}
"""The code of why a field will never have a value; any other error may pass."""
_TRIES = 10
_FAULTS = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: no_driver,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: driver_not_loaded,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: driver_was_updated,
    pynvml.NVML_ERROR_GPU_IS_LOST: gpu_lost,
    pynvml.NVML_ERROR_RESET_REQUIRED: gpu_needs_reset,
    pynvml.NVML_ERROR_NO_PERMISSION: no_driver_permission,
    pynvml.NVML_ERROR_NOT_FOUND: no_such_gpu,
    pynvml.NVML_ERROR_INVALID_ARGUMENT: no_such_gpu,
}
_FIXES = {
    driver_not_loaded.code: "modprobe nvidia; where that fails, dmesg | grep -i nvrm says why",
    driver_was_updated.code: "reboot, or reload its module: rmmod nvidia_uvm nvidia_drm "
    "nvidia_modeset nvidia; nvidia-smi",
    gpu_lost.code: "reboot",
    gpu_needs_reset.code: "reboot",
}
"""What mends a fault of a GPU that is there."""
_LOST = (pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED)


class NoGpuError(Exception):
    """There is no GPU to sample, or none any more."""

    def __init__(self, error: pynvml.NVMLError) -> None:
        self.reason = _fault(error)
        super().__init__(self.reason.code)


def _fault(error: pynvml.NVMLError) -> Finding:
    """Return what an error of the driver means."""
    known = _FAULTS.get(error.value)
    return known() if known else driver_error(message=str(error))


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call without which there is nothing to show. NoGpuError."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        raise NoGpuError(error) from None


def probe() -> DriverProbe:
    """Return what the driver reports of itself."""
    try:
        _call(pynvml.nvmlInit)
        devices, gpm = [], []
        for index in range(_call(pynvml.nvmlDeviceGetCount)):
            handle = _call(pynvml.nvmlDeviceGetHandleByIndex, index)
            name = _call(pynvml.nvmlDeviceGetName, handle)
            devices.append(f"{name} ({_call(pynvml.nvmlDeviceGetUUID, handle)})")
            _require_answers(handle)
            gpm.append(_has_gpm(handle))
        version = _call(pynvml.nvmlSystemGetDriverVersion)
    except NoGpuError as error:
        code = error.reason.code
        fix = _FIXES.get(code, "")
        return DriverProbe(problem=error.reason, fix=fix, present=code != no_driver.code)
    return DriverProbe(version=version, devices=tuple(devices), gpm=tuple(gpm))


def _has_gpm(handle: Any) -> bool:
    try:
        Gpm(handle)
    except pynvml.NVMLError:
        return False
    return True


def _require_answers(handle: Any) -> None:
    """NoGpuError where the GPU is lost: its name and UUID are still known then."""
    for query in _SLOW_FIELDS.values():
        try:
            query(handle)
        except pynvml.NVMLError as error:
            if error.value in _LOST:
                raise NoGpuError(error) from None


def open_gpu(wanted: str, target: SamplingTarget) -> tuple[Gpu, TelemetryStarted]:
    """The GPU with this index or UUID, and what is known of it. NoGpuError."""
    _call(pynvml.nvmlInit)
    handle = _find(wanted)
    uuid = _call(pynvml.nvmlDeviceGetUUID, handle)
    try:
        gpu = Gpu(handle, target.worker, own=_same(uuid, target.worker_gpu))
        facts = _health(handle)
        started = TelemetryStarted(
            gpu=_call(pynvml.nvmlDeviceGetName, handle),
            uuid=uuid,
            driver=_call(pynvml.nvmlSystemGetDriverVersion),
            unsupported=gpu.newly_unsupported(),
            limits=gpu.limits(),
            health=facts,
            problems=_problems(facts),
        )
    except pynvml.NVMLError as error:
        raise NoGpuError(error) from None
    return gpu, started


def _find(wanted: str) -> Any:
    """The device by its index or UUID, never by torch's index: orders differ. NoGpuError."""
    if wanted.isdigit():
        return _call(pynvml.nvmlDeviceGetHandleByIndex, int(wanted))
    try:
        return _call(pynvml.nvmlDeviceGetHandleByUUID, wanted)
    except NoGpuError:
        if not wanted.startswith("GPU-"):
            raise
        # torch does not tell which it is
        return _call(pynvml.nvmlDeviceGetHandleByUUID, f"MIG-{wanted[4:]}")


def _same(uuid: str, other: str | None) -> bool:
    """Return whether two UUIDs name one device, whatever kind each was taken for."""
    return other is not None and uuid.partition("-")[2] == other.partition("-")[2]


def _whole_device(handle: Any) -> Any:
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
    except pynvml.NVMLError:
        return None


def _answers(queries: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Return what the device reports; the rest is left out."""
    values = {}
    for name, query in queries.items():
        with suppress(pynvml.NVMLError):
            values[name] = float(query())
    return values


def _health(handle: Any) -> dict[str, float]:
    values = _answers(
        {
            "ecc_uncorrected": lambda: pynvml.nvmlDeviceGetTotalEccErrors(
                handle, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC
            ),
            "pcie_generation": lambda: pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
            "pcie_generation_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
            "pcie_width": lambda: pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
            "pcie_width_max": lambda: pynvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
            "pcie_replays": lambda: pynvml.nvmlDeviceGetPcieReplayCounter(handle),
        }
    )
    with suppress(pynvml.NVMLError):
        corrected, uncorrected, pending, failed = pynvml.nvmlDeviceGetRemappedRows(handle)
        values |= {"rows_corrected": corrected, "rows_uncorrected": uncorrected}
        values |= {"rows_pending": float(bool(pending)), "rows_failed": float(bool(failed))}
    return values


def _problems(health: dict[str, float]) -> list[Finding]:
    problems = []
    if errors := health.get("ecc_uncorrected"):
        problems.append(ecc_errors(count=int(errors)))
    if health.get("rows_failed"):
        problems.append(row_remapping_failed())
    if health.get("rows_pending"):
        problems.append(row_remapping_pending())
    # The generation drops to save power and comes back under load; a link that is narrow stays so.
    width = health.get("pcie_width")
    full = health.get("pcie_width_max")
    if width and full and width < full:
        problems.append(pcie_narrow(width=int(width), full=int(full)))
    return problems


class Gpm:
    """GPU performance monitoring: two buffers in turn, one request. NVMLError: unsupported."""

    def __init__(self, handle: Any) -> None:
        # A MIG slice is sampled through its parent.
        self._handle = _whole_device(handle)
        self._instance = _gpu_instance(handle)
        self.failed: dict[str, int] = {}
        """Metrics that the last request had no value for, with the driver's code."""
        if not pynvml.nvmlGpmQueryDeviceSupport(self._handle).isSupportedDevice:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        self._last = pynvml.nvmlGpmSampleAlloc()
        self._next = pynvml.nvmlGpmSampleAlloc()
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
        self._request.sample1 = self._last
        self._request.sample2 = self._next
        pynvml.nvmlGpmMetricsGet(self._request)
        self._last, self._next = self._next, self._last
        values = {}
        self.failed = {}
        for place, name in enumerate(METRICS):
            metric = self._request.metrics[place]
            if metric.nvmlReturn == pynvml.NVML_SUCCESS:
                values[name] = metric.value * ((2**20) if name in _RATES else 1)
            else:
                self.failed[name] = metric.nvmlReturn
        return values

    def _sample(self, buffer: Any) -> None:
        if self._instance is None:
            pynvml.nvmlGpmSampleGet(self._handle, buffer)
        else:
            pynvml.nvmlGpmMigSampleGet(self._handle, self._instance, buffer)


class Gpu:
    """Reads one device. `own`: it is the GPU that the worker runs on."""

    def __init__(self, handle: Any, worker: int, *, own: bool) -> None:
        self._handle = handle
        self._worker = worker
        self._own = own
        self._whole = _whole_device(handle)
        self._unsupported: dict[str, str] = {}
        """Of fields and of queries for several of them, the code of why they never have a value."""
        self._failures: dict[str, int] = {}
        self._due: dict[str, float] = {}
        self._told: dict[str, str] = {}
        """Those of the fields, as of the last reading."""
        self._looked_at = monotonic()
        """When processes were looked for last."""
        self._reason_times: dict[int, int] = {}
        self._gpm: Gpm | None = None
        self._gpm_at = monotonic()
        try:
            self._gpm = Gpm(handle)
        except pynvml.NVMLError as error:
            self._disable("gpm", _UNSUPPORTED.get(error.value) or _fault(error).code)
        self._xids: Any = None
        with suppress(pynvml.NVMLError):
            events = pynvml.nvmlEventSetCreate()
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
            self._xids = events

    def newly_unsupported(self) -> dict[str, str]:
        """Return the fields that will never have a value, with the code of the reason, where these
        are others than before.
        """
        now = {name: code for name, code in self._unsupported.items() if name in FIELDS}
        if now == self._told:
            return {}
        self._told = now
        return now

    def limits(self) -> dict[str, float]:
        """Return what the scales of the device's own fields end at."""
        whole = self._whole
        return _answers(
            {
                "power": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(whole) * _MILLI,
                "sm_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(whole, pynvml.NVML_CLOCK_SM),
                "memory_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(
                    whole, pynvml.NVML_CLOCK_MEM
                ),
                "memory_used": lambda: pynvml.nvmlDeviceGetMemoryInfo(self._handle).total,
            }
        )

    def read(self, since: float) -> Telemetry | Finding:
        """All that is due now; why nothing more will come, where that is so."""
        try:
            return self._read(since)
        except NoGpuError as error:
            return error.reason

    def _read(self, since: float) -> Telemetry:
        now = monotonic()
        values: dict[str, float] = {}
        # closer samples of GPM have nothing new between them
        if now - self._gpm_at > 0.1:
            values |= self._read_gpm()
        values |= self._try("fields", self._field_values) or {}
        reasons = self._try("reasons", pynvml.nvmlDeviceGetCurrentClocksEventReasons, self._whole)
        since_last = self._try("counters", self._reasons_since_last)
        if since_last is not None:
            reasons = (reasons or 0) | since_last
        if self._is_due("slow", now, 0.5):
            for name, query in _SLOW_FIELDS.items():
                # what a MIG slice has of its own
                handle = self._handle if name in ("memory_used", "busy") else self._whole
                value = self._try(name, query, handle)
                if value is not None:
                    values[name] = float(value)
        others = others_since = None
        if self._is_due("processes", now, PROCESSES_S):
            others = self._try("processes", self._foreign_processes)
        if others is not None:
            others_since = self._looked_at
            self._looked_at = now
        return Telemetry(
            since=since,
            values=values,
            reasons=reasons,
            others=others,
            others_since=others_since,
            unsupported=self.newly_unsupported(),
            problems=self._reported_xids(),
        )

    def _try(self, name: str, query: Callable[..., Any], *arguments: Any) -> Any:
        """The answer, or None: now, or for good. NoGpuError where the GPU is lost."""
        if name in self._unsupported:
            return None
        try:
            answer = query(*arguments)
        except pynvml.NVMLError as error:
            if error.value in _LOST:
                raise NoGpuError(error) from None
            self._failures[name] = self._failures.get(name, 0) + 1
            code = _UNSUPPORTED.get(error.value)
            if code is None and self._failures[name] >= _TRIES:
                code = keeps_failing.code
            if code:
                self._disable(name, code)
            return None
        self._failures.pop(name, None)
        return answer

    def _disable(self, name: str, code: str) -> None:
        self._unsupported[name] = code
        if name == "gpm":
            self._gpm = None
            self._unsupported |= dict.fromkeys(METRICS, code)
        if name == "fields":
            self._unsupported |= dict.fromkeys(_FIELD_VALUES.values(), code)

    def _is_due(self, name: str, now: float, every_s: float) -> bool:
        if now < self._due.get(name, 0.0):
            return False
        self._due[name] = now + every_s
        return True

    def _read_gpm(self) -> dict[str, float]:
        if self._gpm is None:
            return {}
        values: dict[str, float] = self._try("gpm", self._gpm.sample) or {}
        self._gpm_at = monotonic()
        if self._gpm is not None:
            self._note_unsupported(self._gpm.failed)
        return values

    def _note_unsupported(self, errors: Mapping[str, int]) -> None:
        for name, error in errors.items():
            if code := _UNSUPPORTED.get(error):
                self._unsupported[name] = code

    def _field_values(self) -> dict[str, float]:
        """Power and energy: one call, an error for each entry."""
        values: dict[str, float] = {}
        for entry in pynvml.nvmlDeviceGetFieldValues(self._whole, list(_FIELD_VALUES)):
            name = _FIELD_VALUES[entry.fieldId]
            if entry.nvmlReturn != pynvml.NVML_SUCCESS:
                self._note_unsupported({name: entry.nvmlReturn})
                continue
            is_long = entry.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
            values[name] = (entry.value.ullVal if is_long else entry.value.uiVal) * _MILLI
        return values

    def _reasons_since_last(self) -> int | None:
        """Reasons whose time grew since the last reading; None where nobody counts it."""
        bits = None
        for entry in pynvml.nvmlDeviceGetFieldValues(self._whole, list(_REASON_COUNTERS)):
            if entry.nvmlReturn != pynvml.NVML_SUCCESS:
                continue
            count = int(entry.value.ullVal)
            bits = bits or 0
            if count > self._reason_times.get(entry.fieldId, count):
                bits |= _REASON_COUNTERS[entry.fieldId]
            self._reason_times[entry.fieldId] = count
        return bits

    def _reported_xids(self) -> list[Finding]:
        """Errors that the driver reported of the device since the last reading; it never waits."""
        reported: list[Finding] = []
        while self._xids is not None:
            try:
                event = pynvml.nvmlEventSetWait_v2(self._xids, 0)
            except pynvml.NVMLError:
                break  # a timeout: nothing more came
            reported.append(xid(xid=int(event.eventData)))
        return reported

    def _foreign_processes(self) -> list[str]:
        """Processes on the GPU that are not the run's."""
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
        running = {process.pid for process in processes}
        own = {os.getpid(), self._worker}
        with suppress(psutil.Error):
            own |= {child.pid for child in psutil.Process(self._worker).children(recursive=True)}
        foreign = sorted(running - own)
        if self._own and not running & own:
            # In a container processes go by their numbers on the host: one of them is the worker.
            return [f"{len(foreign) - 1} more"] if len(foreign) > 1 else []
        return [_process_name(pid) for pid in foreign]


def _process_name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} {pid}"
    except psutil.Error:
        return f"pid {pid}"
