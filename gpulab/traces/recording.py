"""What a file of any profiler has: timelines, or sums without one."""

from __future__ import annotations

from typing import NamedTuple

from gpulab.traces.trace import Trace


class Recording(NamedTuple):
    """One timeline of a file: that of a device and its process. `note`: what of it is missing.

    `sums` are the seconds of what a summary lists, by cause and name; it has no `trace`.
    """

    name: str
    trace: Trace | None
    note: str = ""
    sums: dict[tuple[str, str], float] | None = None
