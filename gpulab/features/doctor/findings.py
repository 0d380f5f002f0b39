"""Findings of `--doctor`: why a probe of the machine has no answer."""

from __future__ import annotations

from gpulab.core.findings import finding


@finding("{message}")
def probe_failed(*, message: str) -> None: ...
@finding("the answer of the probe cannot be read: {message}")
def probe_unreadable(*, message: str) -> None: ...
@finding("the probe exited with {code}: {message}")
def probe_ended(*, code: int, message: str) -> None: ...
@finding("no answer within {timeout_s:.0f} s: the driver hangs")
def probe_hangs(*, timeout_s: float) -> None: ...
