"""What a file of any profiler has: timelines, sums without one, or counted kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpulab.traces.trace import Trace


class Recording(NamedTuple):
    """One timeline of a file: that of a device and its process. `note`: what of it is missing.

    `sums` are the seconds of what a summary lists, by cause and name. Neither these nor what
    was counted has a `trace`.
    """

    name: str
    trace: Trace | None
    note: str = ""
    sums: dict[tuple[str, str], float] | None = None
    counted: Any = None
    """The kernels of a file of Nsight Compute, as `gpulab.features.counters.reading` has them."""
