"""One GPU, sampled: every field is a value, or unsupported for a reason, or not due at this tick."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic
from typing import Any

import psutil
import pynvml

from gpulab.protocol.finding import Finding
from gpulab.protocol.telemetry_fields import FIELDS, PROCESSES_S
from gpulab.telemetry import nvml
from gpulab.telemetry.gpm import METRICS, SHORTEST_S, Gpm, whole_device

_SLOW_S = 0.5
_MILLI = 1e-3
_POWER_AVERAGE, _POWER_NOW, _ENERGY = 185, 186, 83
_PCIE_TX, _PCIE_RX = 197, 198
_COUNTERS = {269: 0x20, 270: 0x40, 271: 0x80}
"""Cumulative time under a reason, and the reason's bit: they tell what happened between two readings."""
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
            self._disable_gpm(nvml.unsupported(error) or nvml.fault(error).code)
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
            "memory_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(self._whole, pynvml.NVML_CLOCK_MEM),
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
                    if code := nvml.unsupported(pynvml.NVMLError(error)):
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
            if error.value in nvml.LOST:
                raise GpuLostError(nvml.fault(error)) from None
            self._failures[name] = self._failures.get(name, 0) + 1
            code = nvml.unsupported(error)
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
        """Power, energy and, without GPM, PCIe bytes: one call, each entry with an error of its own."""
        ids = [_POWER_NOW, _POWER_AVERAGE, _ENERGY, *(() if self._gpm else (_PCIE_TX, _PCIE_RX))]
        values: dict[str, float] = {}
        for entry in pynvml.nvmlDeviceGetFieldValues(self._whole, ids):
            name = _NAMES[entry.fieldId]
            if entry.nvmlReturn != pynvml.NVML_SUCCESS:
                if code := nvml.unsupported(pynvml.NVMLError(entry.nvmlReturn)):
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
        """Bits of the reasons whose time grew since the last reading; None where the device does not count them."""
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
        running = {process.pid for process in pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)}
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
    query = getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    return int(query(handle))


def _temperature(handle: Any) -> float:
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))
    except (AttributeError, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))  # an older driver


_SLOW_FIELDS: dict[str, Callable[[Any], float]] = {
    "sm_clock": lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    "memory_clock": lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
    "temperature": _temperature,
    "memory_used": lambda handle: float(pynvml.nvmlDeviceGetMemoryInfo(handle).used),
    "busy": lambda handle: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
}
