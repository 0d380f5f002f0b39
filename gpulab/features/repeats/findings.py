"""Findings of a result over several runs."""

from __future__ import annotations

from gpulab.core.findings import finding
from gpulab.core.units import plural


@finding()
def too_few_runs(*, runs: int, needed: int) -> str:
    return f"{plural(runs, 'run')}: a 99 % interval over runs needs {needed}"
