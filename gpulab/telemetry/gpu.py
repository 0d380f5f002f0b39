"""One GPU, sampled: every field is a value, or unsupported with its reason, or not due at this tick."""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic
from typing import Any

import psutil
import pynvml

from gpulab.model.telemetry import FIELDS, PROCESSES_S
from gpulab.telemetry import nvml
from gpulab.telemetry.gpm import METRICS, SHORTEST_S, Gpm, whole_device

_SLOW_S = 0.5
_MILLI = 1e-3
_POWER_AVERAGE, _POWER_NOW, _ENERGY = 185, 186, 83
_PCIE_TX, _PCIE_RX = 197, 198
_COUNTERS = {269: 0x20, 270: 0x40, 271: 0x80}
"""Cumulative time under a reason, and the reason's bit: they tell what happened between two readings."""
_TRIES = 10


class GpuLostError(Exception):
    """Nothing more will come from this GPU."""


class Gpu:
    """Reads one device. `unsupported` says why a field will never have a value."""

    def __init__(self, handle: Any, worker: int, *, ours: bool) -> None:
        self._handle, self._worker, self._ours = handle, worker, ours
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
            self._no_gpm(nvml.unsupported(error) or nvml.explain(error))
        except AttributeError:
            self._no_gpm("not in this version of nvidia-ml-py")
        self.processes_since = monotonic()
        self.others: list[str] | None = None

    @property
    def never(self) -> dict[str, str]:
        """Fields that will never have a value, with the reason."""
        return {name: why for name, why in self.unsupported.items() if name in FIELDS}

    def forget(self) -> None:
        """After a pause: what accumulated meanwhile is of no reading."""
        self._bytes.clear()
        if self._gpm is not None:
            self._try("gpm", self._gpm.sample)
            self._gpm_at = monotonic()

    def limits(self) -> dict[str, float]:
        """What the scales of the device's own fields end at."""
        asked: dict[str, Callable[[], float]] = {
            "power": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(self._whole) * _MILLI,
            "sm_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(self._whole, pynvml.NVML_CLOCK_SM),
            "memory_clock": lambda: pynvml.nvmlDeviceGetMaxClockInfo(self._whole, pynvml.NVML_CLOCK_MEM),
            "memory_used": lambda: pynvml.nvmlDeviceGetMemoryInfo(self._handle).total,
        }
        found = {}
        for name, ask in asked.items():
            try:
                found[name] = float(ask())
            except pynvml.NVMLError:
                continue
        return found

    def sample(self) -> tuple[dict[str, float], int | None]:
        """(values by field, clock-event reasons). GpuLostError."""
        found: dict[str, float] = {}
        now = monotonic()
        if self._gpm is not None and now - self._gpm_at > SHORTEST_S:
            found |= self._try("gpm", self._gpm.sample) or {}
            self._gpm_at = now
            if self._gpm is not None:
                for name, code in self._gpm.failed.items():
                    if why := nvml.unsupported(pynvml.NVMLError(code)):
                        self.unsupported[name] = why
        found |= self._try("fields", self._fields) or {}
        reasons = self._try("reasons", lambda: _reasons(self._whole))
        since = self._try("counters", self._since_last)
        if since is not None:
            reasons = (reasons or 0) | since
        if self._is_due("slow", now, _SLOW_S):
            for name, ask in _SLOWLY.items():
                handle = self._handle if name in _OF_A_SLICE else self._whole
                value = self._try(name, lambda ask=ask, handle=handle: ask(handle))  # type: ignore[misc]
                if value is not None:
                    found[name] = value
        self.others = None
        if self._is_due("processes", now, PROCESSES_S):
            self.others = self._try("processes", self._foreign)
        return found, reasons

    def _try(self, name: str, ask: Callable[[], Any]) -> Any:
        """The answer, or None: the field is left out now, or for good where it will never come."""
        if name in self.unsupported:
            return None
        try:
            answer = ask()
        except AttributeError:
            self.unsupported[name] = "not in this version of nvidia-ml-py"
            return None
        except pynvml.NVMLError as error:
            if error.value in nvml.LOST:
                raise GpuLostError(nvml.explain(error)) from None
            self._failures[name] = self._failures.get(name, 0) + 1
            why = nvml.unsupported(error)
            if why is None and self._failures[name] >= _TRIES:
                why = f"it failed {_TRIES} times: {error}"
            if why and name == "gpm":
                self._no_gpm(why)
            elif why:
                for field in _FIELDS_OF.get(name, (name,)):
                    self.unsupported[field] = why
                self.unsupported[name] = why
            return None
        self._failures.pop(name, None)
        return answer

    def _no_gpm(self, why: str) -> None:
        self._gpm = None
        self.unsupported |= dict.fromkeys((*METRICS, "gpm"), why)
        for name in ("pcie_tx", "pcie_rx"):  # these come from byte counters then
            del self.unsupported[name]

    def _is_due(self, what: str, now: float, every_s: float) -> bool:
        if now < self._due.get(what, 0.0):
            return False
        self._due[what] = now + every_s
        return True

    def _fields(self) -> dict[str, float]:
        """Power, energy and, without GPM, PCIe bytes: one call, each entry with an error of its own."""
        ids = [_POWER_NOW, _POWER_AVERAGE, _ENERGY, *(() if self._gpm else (_PCIE_TX, _PCIE_RX))]
        found: dict[str, float] = {}
        for value in pynvml.nvmlDeviceGetFieldValues(self._whole, ids):
            name = _NAMES[value.fieldId]
            if value.nvmlReturn != pynvml.NVML_SUCCESS:
                error = pynvml.NVMLError(value.nvmlReturn)
                if why := nvml.unsupported(error):
                    self.unsupported[name] = why
                continue
            self.unsupported.pop(name, None)
            number = value.value.ullVal if value.valueType == pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG else None
            number = value.value.uiVal if number is None else number
            if value.fieldId in (_PCIE_TX, _PCIE_RX):
                rate = self._rate(value.fieldId, number)
                if rate is not None:
                    found[name] = rate
            else:
                found[name] = number * _MILLI
        return found

    def _rate(self, field: int, counted: int) -> float | None:
        now = monotonic()
        before = self._bytes.get(field)
        self._bytes[field] = now, counted
        if before is None or counted < before[1] or now <= before[0]:
            return None
        return (counted - before[1]) / (now - before[0])

    def _since_last(self) -> int | None:
        """Bits of the reasons whose time grew since the last reading; None where the device does not count them."""
        found = None
        for value in pynvml.nvmlDeviceGetFieldValues(self._whole, list(_COUNTERS)):
            if value.nvmlReturn != pynvml.NVML_SUCCESS:
                continue
            counted = int(value.value.ullVal)
            found = found or 0
            if counted > self._counters.get(value.fieldId, counted):
                found |= _COUNTERS[value.fieldId]
            self._counters[value.fieldId] = counted
        return found

    def _foreign(self) -> list[str]:
        """Processes on the GPU that are not the run's."""
        seen = {one.pid for one in pynvml.nvmlDeviceGetComputeRunningProcesses(self._handle)}
        mine = {os.getpid(), self._worker, *_descendants(self._worker)}
        foreign = sorted(seen - mine)
        if self._ours and not seen & mine:
            if len(foreign) < 2:
                return []  # the worker: in a container processes go by their numbers on the host
            return [f"{len(foreign) - 1} more"]
        return [_named(pid) for pid in foreign]


def _descendants(pid: int) -> set[int]:
    try:
        return {child.pid for child in psutil.Process(pid).children(recursive=True)}
    except psutil.Error:
        return set()


def _named(pid: int) -> str:
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
    ask = getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    return int(ask(handle))


def _temperature(handle: Any) -> float:
    try:
        return float(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))
    except (AttributeError, pynvml.NVMLError_FunctionNotFound, pynvml.NVMLError_ArgumentVersionMismatch):
        return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))  # an older driver


_SLOWLY: dict[str, Callable[[Any], float]] = {
    "sm_clock": lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
    "memory_clock": lambda handle: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
    "temperature": _temperature,
    "memory_used": lambda handle: float(pynvml.nvmlDeviceGetMemoryInfo(handle).used),
    "busy": lambda handle: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu),
}
