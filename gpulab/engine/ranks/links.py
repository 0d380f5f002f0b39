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
from gpulab.engine.ranks.orders import UseLink
from gpulab.scenario import GiB, KiB, MiB

SIZES = {
    "cpu": (1 * KiB, 64 * KiB, 1 * MiB, 16 * MiB),
    "cuda": (1 * KiB, 64 * KiB, 1 * MiB, 16 * MiB, 256 * MiB, 1 * GiB),
}
BRIEF = {"cpu": 16 * MiB, "cuda": 256 * MiB}
"""Beside a run: one that a link is busy with."""
_MOST_STEPS = 1000


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
    order: UseLink,
    rank: int,
    group: dist.ProcessGroup,
    device: torch.device,
    wait: Callable[[], None] | None,
) -> list[float]:
    """Seconds per step of each block; all ranks carry out the same order."""
    step = step_of(order.link, order.bytes, rank, group, device)
    time_s(step, 1, group, wait)
    return [time_s(step, order.steps, group, wait) for _ in range(order.blocks)]


def steps_for(seconds: float, step_s: float) -> int:
    """Steps that take about so long."""
    return max(1, min(_MOST_STEPS, int(seconds / max(step_s, 1e-9))))
