"""NVTX ranges around variants, steps and phases, where Nsight Systems, Nsight Compute or another
tool listens in this process; else nothing is imported and nothing is called.

They are ranges that start and end, not ones that are pushed and popped: these nest with those of
the program, which would end ours, and phases may overlap. A followed program loads this file too:
standard library only, for Python 3.9 and later.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

PREFIX = "gpulab:"
STEP = f"{PREFIX}step"
_LIBRARY = "NVTX_INJECTION64_PATH"
_SET_BY_PROFILERS = ("NSYS_PROFILING_SESSION_ID", "NV_NSIGHT_INJECTION_TRANSPORT_TYPE")
"""By nsys, and by ncu."""


def profiler_listens() -> bool:
    """Return whether a tool for NVTX has set the environment of this process.

    Some images have CUPTI itself as the library of NVTX: it shows nothing, and a first range would
    load it, after which torch's profiler gets no kernels.
    """
    library = os.environ.get(_LIBRARY, "").rpartition("/")[2]
    listens = bool(library) and not library.startswith("libcupti")
    return listens or any(name in os.environ for name in _SET_BY_PROFILERS)


class Ranges(NamedTuple):
    """What starts a range of this name, and ends the one that was started."""

    start: Callable[[str], Any]
    end: Callable[[Any], object]

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Have a range around what runs inside."""
        started = self.start(name)
        try:
            yield
        finally:
            self.end(started)


@cache
def ranges() -> Ranges | None:
    """Return the ranges of the package `nvtx`, or else those of torch for CUDA where the program
    has imported it; None where no profiler listens, or neither is there.
    """
    if not profiler_listens():
        return None
    try:
        import nvtx
    except ImportError:
        torch = sys.modules.get("torch")
        if torch is None or torch.version.cuda is None:
            return None
        return Ranges(torch.cuda.nvtx.range_start, torch.cuda.nvtx.range_end)
    return Ranges(nvtx.start_range, nvtx.end_range)


class StepRange:
    """The range of the step that goes on; the first one has none, whose begin nobody knew."""

    def __init__(self) -> None:
        self._started: Any = None

    def next(self) -> None:
        """A step has ended, and another one begins."""
        found = ranges()
        if found is None:
            return
        if self._started is not None:
            found.end(self._started)
        self._started = found.start(STEP)
