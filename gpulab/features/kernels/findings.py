"""Findings of compiled kernels."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding("registers and machine code of its kernels could not be read: {message}")
def kernels_not_read(*, message: str) -> None: ...
