"""Findings of JAX: what its devices hold."""

from __future__ import annotations

from gpulab.core.findings import Rank, finding
from gpulab.core.units import byte_count


@finding(rank=Rank.EXPLAINING)
def jax_memory(*, total: int, file: str) -> str:
    return f"arrays of JAX hold {byte_count(total)} after a step; by line of Python: {file} (pprof)"
