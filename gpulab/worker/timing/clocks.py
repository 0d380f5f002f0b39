"""Which clocks a run is measured by: the one that its verdict takes, and on a GPU the other one beside it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpulab.protocol.device import Device
from gpulab.protocol.jobs import TimedJob
from gpulab.protocol.statuses import Cache, Clock
from gpulab.worker.process.device import flusher
from gpulab.worker.timing.clock import WallClock
from gpulab.worker.timing.device_clock import DeviceClock


def clocks_for(
    job: TimedJob, device: torch.device, info: Device, wait: Callable[[], None] | None
) -> tuple[WallClock, WallClock | None]:
    """(the verdict's clock, the other one or None)."""
    flush = flusher(device, info.l2_bytes) if job.cache == Cache.COLD else None
    wall = WallClock(wait, flush)
    if wait is None:
        return wall, None
    device_clock = DeviceClock(wait, flush)
    return (device_clock, wall) if job.clock == Clock.DEVICE else (wall, device_clock)
