"""Theoretical occupancy: how many blocks fit on an SM, and what keeps more from it.

Limits by compute capability: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; register
allocation by warps in units of 256: CUDA occupancy calculator.
"""

from __future__ import annotations

from typing import NamedTuple

_WARP, _REGISTER_UNIT, _SHARED_UNIT = 32, 256, 128
_RESERVED = 1024
"""Shared memory of each block that the system takes, since compute capability 8.0."""
_WARP_UNIT = 4
"""Warps are given registers in groups, one for each of the SM's partitions."""


class Limits(NamedTuple):
    """Of an SM."""

    warps: int
    blocks: int
    shared_bytes: int
    registers: int = 65536


class Occupancy(NamedTuple):
    """Blocks on an SM at once, the share of the warps that it can hold, and what limits it."""

    blocks: int
    share: float
    limiter: str


LIMITS = {
    "sm_75": Limits(32, 16, 64 << 10),
    "sm_80": Limits(64, 32, 164 << 10),
    "sm_86": Limits(48, 16, 100 << 10),
    "sm_87": Limits(48, 16, 164 << 10),
    "sm_89": Limits(48, 24, 100 << 10),
    "sm_90": Limits(64, 32, 228 << 10),
    "sm_100": Limits(64, 32, 228 << 10),
    "sm_103": Limits(64, 32, 228 << 10),
    "sm_120": Limits(48, 24, 100 << 10),
}


def occupancy(arch: str, threads: int, registers: int, shared_bytes: int) -> Occupancy | None:
    """Of a kernel with so many threads a block, registers a thread and bytes of shared memory a block.

    None for an architecture whose limits are not known. Where several things allow as many blocks, the first of
    threads, registers, shared memory and blocks is named.
    """
    limits = LIMITS.get(arch)
    if limits is None:
        return None
    warps = -(-threads // _WARP)
    reserved = 0 if arch == "sm_75" else _RESERVED
    shared = _up(shared_bytes + reserved, _SHARED_UNIT) if shared_bytes + reserved else 0
    of_warp = _up(max(1, registers) * _WARP, _REGISTER_UNIT)
    warps_with_registers = limits.registers // of_warp // _WARP_UNIT * _WARP_UNIT
    allowed = {
        "threads": limits.warps // warps,
        "registers": warps_with_registers // warps,
        "shared memory": limits.shared_bytes // shared if shared else limits.blocks,
        "blocks": limits.blocks,
    }
    limiter = min(allowed, key=allowed.__getitem__)
    return Occupancy(allowed[limiter], allowed[limiter] * warps / limits.warps, limiter)


def _up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
