"""Findings of scenarios with several ranks."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding("other ranks may still work when a step has returned: a block ends when all ranks have")
def ranks_end_later() -> None: ...
