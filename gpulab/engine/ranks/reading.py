"""What the GPU of a rank says of itself just after a block: the telemetry process samples the first
GPU alone.
"""

from __future__ import annotations

from contextlib import suppress

import torch

from gpulab.engine.ranks.orders import Reading


def reading(device: torch.device) -> Reading:
    """Empty on a CPU, and where the driver does not say."""
    if device.type == "cuda":
        with suppress(Exception):  # torch passes on whatever NVML raises
            power_w = torch.cuda.power_draw(device) / 1e3
            return Reading(sm_mhz=float(torch.cuda.clock_rate(device)), power_w=power_w)
    return Reading()
