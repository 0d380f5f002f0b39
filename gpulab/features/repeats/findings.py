"""Findings of a result over several runs."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding("{runs:plural run}: a 99 % interval over runs needs {needed}")
def too_few_runs(*, runs: int, needed: int) -> None: ...
