"""Which clocks a run is measured by: the one that its verdict takes, and on a GPU the other one beside it."""

from __future__ import annotations

from collections.abc import Callable

import torch

from gpulab.model.request import Device, RunRequest
from gpulab.worker.clock import Clock
from gpulab.worker.device import flusher
from gpulab.worker.device_clock import DeviceClock


def clocks(
    request: RunRequest, device: torch.device, found: Device, wait: Callable[[], None] | None
) -> tuple[Clock, Clock | None]:
    """(the verdict's clock, the other one or None)."""
    flush = flusher(device, found.l2_bytes) if request.cache == "cold" else None
    wall = Clock(wait, flush)
    if wait is None:
        return wall, None
    on_device = DeviceClock(wait, flush)
    return (on_device, wall) if request.clock == "device" else (wall, on_device)
