"""Samples a GPU's counters by CUPTI's PM sampling: a program of its own, run by a Python that has
cupti-python (3.9 or newer), which imports nothing of gpulab.

Lines of JSON: first the arguments of `Sampler`, then those of a method, named in "do". Each line
has an "answer" or an "error". The end of stdin is the end. An argument of the command is a folder
with the packages, where they are not this Python's own.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import time
from contextlib import suppress
from importlib import metadata, util
from math import isfinite
from pathlib import Path
from typing import Any

_COPIED, _COPIES = 1 << 28, 4
"""Bytes of a copy, several times the L2 cache and the stream of samples; and how many inside."""
_IDLE_S = 0.002
"""Around the work: the first sample begins at 0, and the last one may be incomplete."""


class Sampler:
    """Makes a collector for each pass: a second decode of one ends in a segmentation fault."""

    def __init__(self, device: int | None) -> None:
        if device is None:
            raise OSError("no GPU: this run is on the CPU")
        _preload()
        self._cuda = ctypes.CDLL("libcuda.so.1")
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(number), device)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), number)
        self._call("cuCtxSetCurrent", context)
        from cupti import cupti, pm_sampling  # the context comes first

        self._make, self._device = pm_sampling.Collector, device
        self._refused = ValueError, cupti.cuptiError
        self._collector: Any = None

    def _call(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._cuda, name)(*arguments):
            kind = "no GPU: " * name.startswith(("cuInit", "cuDeviceGet"))
            raise OSError(f"{kind}{name} returned {code}")

    def supported(self, metrics: list[str], interval_ns: int) -> list[str]:
        """All of them, or else those that can be sampled together, in their order."""
        with suppress(*self._refused):
            self._open(metrics, interval_ns)
            return metrics
        fitting: list[str] = []
        for metric in metrics:
            with suppress(*self._refused):
                self._open([*fitting, metric], interval_ns)
                fitting.append(metric)
        return fitting

    def start(self, metrics: list[str], interval_ns: int) -> None:
        self._open(metrics, interval_ns)
        self._collector.start()
        time.sleep(_IDLE_S)

    def stop(self, *, decode: bool = True) -> list[list[float]]:
        """The samples: start and end in ns of the system's clock, and a value a metric."""
        time.sleep(_IDLE_S)
        self._collector.stop()
        samples = self._decoded() if decode else []
        self._collector.disable()
        return samples

    def _decoded(self) -> list[list[float]]:
        """What it is decoded from ends with this function, before the collector does."""
        data = self._collector.decode()
        rows = [[each.start_timestamp, each.end_timestamp, *each.metric_values] for each in data]
        return [row for row in rows if all(map(isfinite, row))]

    def check(self, metrics: list[str], interval_ns: int) -> dict[str, Any]:
        """Samples of copies of known size: in the device, and from and to the host."""
        one, other, host = (ctypes.c_void_p() for _ in range(3))
        size = ctypes.c_size_t(_COPIED)
        for memory in (one, other):
            self._call("cuMemAlloc_v2", ctypes.byref(memory), size)
        self._call("cuMemHostAlloc", ctypes.byref(host), size, 0)
        self.start(metrics, interval_ns)
        for _ in range(_COPIES):
            self._call("cuMemcpyDtoD_v2", one, other, size)
        self._call("cuCtxSynchronize")
        inside = self.stop()
        self.start(metrics, interval_ns)
        self._call("cuMemcpyHtoD_v2", one, host, size)
        self._call("cuMemcpyDtoH_v2", host, other, size)
        link = self.stop()
        for memory in (one, other):
            self._call("cuMemFree_v2", memory)
        self._call("cuMemFreeHost", host)
        return {"inside": [_COPIES * _COPIED, inside], "link": [_COPIED, link]}

    def _open(self, metrics: list[str], interval_ns: int) -> None:
        if self._collector is not None:
            self._collector.disable()
        self._collector = self._make(device_index=self._device)
        self._collector.enable()
        how = {"hardware_buffer_size": 1 << 28, "sampling_interval": interval_ns}
        self._collector.configure(metrics=metrics, **how)


def _preload() -> None:
    """Load CUPTI from beside cupti-python, before it takes another one of the system."""
    spec = util.find_spec("cupti")
    package = Path(str(spec and spec.origin)).parent
    if not any(package.glob("pm_sampling*")):
        raise ModuleNotFoundError("No module named 'cupti.pm_sampling'")
    for folder in sorted(package.parent.glob("nvidia/cu[0-9]*/lib"))[-1:]:
        for pattern in ("libcupti.so.*", "libnvperf_host.so", "libnvperf_target.so"):
            for library in folder.glob(pattern):
                ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def main() -> None:
    sys.path[:0] = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    sampler: Any = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if sampler is None:
                sampler, answer = Sampler(**asked), metadata.version("cupti-python")
            else:
                answer = getattr(sampler, asked.pop("do"))(**asked)
            said = {"answer": answer}
        except Exception as error:
            said = {"error": f"{type(error).__name__}: {error}"[:1000]}
        answers.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
