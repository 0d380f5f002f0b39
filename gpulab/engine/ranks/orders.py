"""What rank 0 tells the other ranks of a scenario, and what they answer: messages between a process
and those that it forked.

An order is the name of a method of `RankWorker`, and its arguments. `key` is that of a build, in
the order in which rank 0 made them.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec
import torch

UNANSWERED = ("use_link", "step", "adopt", "restore")
"""Orders of which rank 0 hears only where they fail, on another pipe."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """Clock and power of a GPU just after a block."""

    sm_mhz: float | None = None
    power_w: float | None = None


def reading(device: torch.device) -> Reading:
    """Return what the GPU of a rank says of itself: the telemetry process samples the first GPU
    alone. Empty on a CPU, and where the driver does not say.
    """
    if device.type == "cuda":
        with suppress(Exception):  # torch passes on whatever NVML raises
            power_w = torch.cuda.power_draw(device) / 1e3
            return Reading(sm_mhz=float(torch.cuda.clock_rate(device)), power_w=power_w)
    return Reading()


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`problem`: why an order could not be carried out; `skipped`: the variant asked for it.

    `seconds`, `memory_bytes` and `reading` are those of a block, the seconds of one step of it, the
    memory at most; `tensors` are the dtypes and shapes of what an order to send outputs has
    written.
    """

    problem: str = ""
    skipped: bool = False
    has_state: bool = False
    seconds: float = 0.0
    memory_bytes: int | None = None
    reading: Reading = Reading()
    tensors: list[tuple[torch.dtype, torch.Size]] = []
