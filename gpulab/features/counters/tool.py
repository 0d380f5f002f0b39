"""Whether ncu can count here, as far as that is known before it runs."""

from __future__ import annotations

import shutil

from gpulab.core.findings import Finding
from gpulab.features.counters.findings import nothing_counted


def why_not(device: str, ranks: int = 1) -> Finding | None:
    """Return why ncu counts nothing in a run on this device; None where it may."""
    if device == "cpu":
        return nothing_counted(reason="on_cpu")
    if ranks > 1:
        return nothing_counted(reason="ranks")
    return None if shutil.which("ncu") else nothing_counted(reason="ncu_missing")
