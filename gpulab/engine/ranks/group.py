"""The process group of a scenario's ranks: gloo on CPUs; NCCL with a GPU each, and gloo beside it
for what lies in host memory.
"""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

from gpulab.engine.ranks.where import RECORDED

_SETTINGS = {
    "TORCH_FR_BUFFER_SIZE": str(RECORDED),
    "GLOO_SOCKET_IFNAME": "lo",  # all ranks are here, whatever the host's name resolves to
    # Multicast needs rights that a shared host may not give.
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",  # it would end rank 0, with what was measured
}
"""What a user has set stays."""


def device_of_rank(device: str, rank: int) -> str:
    """`cuda:0` is the first of consecutive GPUs."""
    kind, _, index = device.partition(":")
    return kind if kind == "cpu" else f"{kind}:{int(index or 0) + rank}"


def threads_of_rank(threads: int, ranks: int) -> int:
    """The cores are shared."""
    return max(1, threads // max(1, ranks))


def join(store: str, rank: int, ranks: int, device: torch.device) -> dist.ProcessGroup:
    """The group, once all ranks have joined. `store`: a file that does not exist yet; no port that
    may be taken.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks))
    on_gpu = device.type == "cuda"
    # Longer than the lab waits: its own message names the rank, torch's does not.
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if on_gpu else "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(minutes=30),
        device_id=device if on_gpu else None,
    )
    assert dist.group.WORLD is not None
    return dist.group.WORLD
