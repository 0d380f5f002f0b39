"""Samples a GPU's counters by CUPTI's PM sampling: a program of its own, run by a Python that has
cupti-python (3.9 or newer), which imports nothing of gpulab.

Lines of JSON. Asked: first the index of the CUDA device, then what `_Sampler` has a method for, by
its name in "do", and its arguments. Each line has an answer; one with a "code" says why there is
none. The end of stdin is the end. An argument is a folder with the packages, where they are not
this Python's own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from importlib import metadata, util
from pathlib import Path
from typing import Any

_COPIED, _COPIES = 1 << 28, 4
"""Bytes of a copy within the device, several times the L2 cache, and copies in a row."""
_HOST_COPIED = 1 << 26
_IDLE_S = 0.002
"""Before and after the work: the first sample begins at 0, and the last one may be incomplete."""


class AbsentError(Exception):
    """There are no counters: a code, and what was said."""


class _Cuda:
    """The driver's library: a context, and copies of known size."""

    def __init__(self, device: int) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise AbsentError("counters_need_gpu", str(error)) from None
        self._call("cuInit", 0)
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(number), device)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if not code:
            return
        is_open = not name.startswith(("cuInit", "cuDevice"))
        raise AbsentError("failed" if is_open else "counters_need_gpu", f"{name} returned {code}")

    def memory(self, size: int, *, host: bool = False) -> ctypes.c_void_p:
        place, count = ctypes.c_void_p(), ctypes.c_size_t(size)
        if host:
            self._call("cuMemHostAlloc", ctypes.byref(place), count, 0)
        else:
            self._call("cuMemAlloc_v2", ctypes.byref(place), count)
        return place

    def free(self, place: ctypes.c_void_p, *, host: bool = False) -> None:
        self._call("cuMemFreeHost" if host else "cuMemFree_v2", place)

    def copy(self, kind: str, target: Any, source: Any, size: int) -> None:
        self._call(f"cuMemcpy{kind}_v2", target, source, ctypes.c_size_t(size))
        self._call("cuCtxSynchronize")


class _Sampler:
    """One collector at a time: a second decode of the same one ends in a segmentation fault."""

    def __init__(self, device: int | None) -> None:
        if device is None:
            raise AbsentError("counters_need_gpu", "this run is on the CPU")
        _preload()
        self._cuda = _Cuda(device)
        self._device = device
        self._collector: Any = None
        from cupti import pm_sampling  # the context comes first

        self._pm = pm_sampling
        self.version = metadata.version("cupti-python")

    def supported(self, metrics: list[str], interval_ns: int) -> dict[str, Any]:
        """Those that can be sampled together, in their order."""
        if self._fits(metrics, interval_ns):
            return {"metrics": metrics}
        fitting: list[str] = []
        for metric in metrics:
            if self._fits([*fitting, metric], interval_ns):
                fitting.append(metric)
        return {"metrics": fitting}

    def _fits(self, metrics: list[str], interval_ns: int) -> bool:
        try:
            self._open(metrics, interval_ns)
        except (PermissionError, RuntimeError):
            raise
        except Exception as error:
            if _code_of(error) != "failed":
                raise
            return False
        finally:
            self._close()
        return True

    def start(self, metrics: list[str], interval_ns: int) -> dict[str, Any]:
        self._open(metrics, interval_ns)
        self._collector.start()
        time.sleep(_IDLE_S)
        return {}

    def stop(self, *, decode: bool = True) -> dict[str, Any]:
        """The samples: start and end in ns of the system's clock, and a value a metric."""
        try:
            time.sleep(_IDLE_S)
            self._collector.stop()
            if not decode:
                return {}
            data = self._collector.decode()
            samples = [
                [sample.start_timestamp, sample.end_timestamp, *sample.metric_values]
                for sample in data
            ]
            return {"samples": samples, "slots": data.num_total_samples}
        finally:
            self._close()

    def check(self, metrics: list[str], interval_ns: int) -> dict[str, Any]:
        """The sum of each metric over copies of known size: in the device, from and to the host."""
        cuda = self._cuda
        one, other = cuda.memory(_COPIED), cuda.memory(_COPIED)
        host = cuda.memory(_HOST_COPIED, host=True)
        self.start(metrics, interval_ns)
        for _ in range(_COPIES):
            cuda.copy("DtoD", one, other, _COPIED)
        inside = self._sums()
        self.start(metrics, interval_ns)
        cuda.copy("HtoD", one, host, _HOST_COPIED)
        cuda.copy("DtoH", host, other, _HOST_COPIED)
        link = self._sums()
        cuda.free(one)
        cuda.free(other)
        cuda.free(host, host=True)
        return {
            "inside": inside,
            "inside_bytes": _COPIES * _COPIED,
            "link": link,
            "link_bytes": _HOST_COPIED,
        }

    def _sums(self) -> list[float]:
        rows = [each[2:] for each in self.stop()["samples"] if each[0]]
        return [sum(row[place] for row in rows) for place in range(len(rows[0]) if rows else 0)]

    def _open(self, metrics: list[str], interval_ns: int) -> None:
        self._close()  # of one whose steps failed
        self._collector = self._pm.Collector(device_index=self._device)
        self._collector.enable()
        self._collector.configure(
            metrics=metrics, hardware_buffer_size=1 << 28, sampling_interval=interval_ns
        )

    def _close(self) -> None:
        collector, self._collector = self._collector, None
        if collector is not None:
            collector.disable()


def _preload() -> None:
    """Load CUPTI from beside cupti-python, before it takes another one of the system."""
    spec = util.find_spec("cupti")
    if spec is None or not spec.submodule_search_locations:
        raise AbsentError("counters_without_package", "No module named 'cupti'")
    package = Path(next(iter(spec.submodule_search_locations)))
    if not any(package.glob("pm_sampling*")):
        raise AbsentError("counters_package_is_old", "it has no pm_sampling")
    folders = sorted(package.parent.glob("nvidia/cu[0-9]*/lib"))
    folder = folders[-1] if folders else package
    for pattern in ("libcupti.so.*", "libnvperf_host.so", "libnvperf_target.so"):
        for library in folder.glob(pattern):
            ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def _code_of(error: Exception) -> str:
    if isinstance(error, AbsentError):
        return str(error.args[0])
    if isinstance(error, PermissionError) or "INSUFFICIENT_PRIVILEGES" in str(error):
        return "counters_not_permitted"
    return "failed"


def _answer(make: Any, **arguments: Any) -> Any:
    try:
        return make(**arguments)
    except Exception as error:
        message = error.args[-1] if isinstance(error, AbsentError) else str(error)
        return {"code": _code_of(error), "message": f"{message or type(error).__name__}"[:1000]}


def main() -> None:
    sys.path[:0] = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    sampler: _Sampler | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        if sampler is None:
            answer = _answer(_Sampler, **asked)
            if isinstance(answer, _Sampler):
                sampler, answer = answer, {"version": answer.version}
        else:
            answer = _answer(getattr(sampler, asked.pop("do")), **asked)
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
