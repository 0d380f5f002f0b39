"""What joins ranks, measured: all-reduces and sends between two ranks, by size.

Bus bandwidth is that of NCCL-tests (doc/PERFORMANCE.md): an all-reduce of S bytes over n ranks
moves 2 (n - 1) / n times S over the busiest link, a send S.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

import torch
import torch.distributed as dist

from gpulab.core.payloads import ALL_REDUCE, RANK_TO_RANK
from gpulab.scenario import GiB, KiB, MiB

SIZES = {
    "cpu": (1 * KiB, 64 * KiB, 1 * MiB, 16 * MiB),
    "cuda": (1 * KiB, 64 * KiB, 1 * MiB, 16 * MiB, 256 * MiB, 1 * GiB),
}
BRIEF = {"cpu": 16 * MiB, "cuda": 256 * MiB}
"""Beside a run: one that a link is busy with."""


def bus_bytes(link: str, size: int, ranks: int) -> float:
    """Bytes of one step over the busiest link."""
    return size * 2 * (ranks - 1) / ranks if link == ALL_REDUCE else float(size)


def step_of(
    link: str, size: int, rank: int, group: dist.ProcessGroup, device: torch.device
) -> Callable[[], object]:
    """Return the function of a rank for one transfer of so many bytes; of a send all ranks but 0
    and 1 do nothing.
    """
    data = torch.ones(size // 4, device=device)
    if link == ALL_REDUCE:
        return lambda: dist.all_reduce(data, op=dist.ReduceOp.MAX, group=group)
    assert link == RANK_TO_RANK
    if rank == 0:
        return lambda: dist.send(data, 1, group=group)
    return (lambda: dist.recv(data, 0, group=group)) if rank == 1 else lambda: None


def time_s(
    step: Callable[[], object],
    steps: int,
    group: dist.ProcessGroup,
    wait: Callable[[], None] | None,
) -> float:
    """Seconds per step of so many, which begin and end on all ranks together."""
    dist.barrier(group=group)
    if wait:
        wait()
    started = perf_counter()
    for _ in range(steps):
        step()
    if wait:
        wait()
    # what rank 0 has sent may not have arrived
    dist.barrier(group=group)
    if wait:
        wait()
    return (perf_counter() - started) / steps


def transfers(
    link: str,
    size: int,
    steps: int,
    blocks: int,
    rank: int,
    group: dist.ProcessGroup,
    device: torch.device,
    wait: Callable[[], None] | None,
) -> list[float]:
    """Transfer so many bytes over a link, on all ranks: once to set up, then `blocks` of `steps`;
    seconds per step of each block.
    """
    step = step_of(link, size, rank, group, device)
    time_s(step, 1, group, wait)
    return [time_s(step, steps, group, wait) for _ in range(blocks)]


def steps_for(seconds: float, step_s: float) -> int:
    """Steps that take about so long."""
    return max(1, min(1000, int(seconds / max(step_s, 1e-9))))
