"""Findings of the time that passed between blocks."""

from __future__ import annotations

from gpulab.core.findings import finding
from gpulab.core.statuses import CheckKind


@finding(
    "its steps claim {claimed_s:seconds} each, {saved_s:seconds} less than those of {against}, but "
    "{hidden_s:seconds} more than for those passed beside its blocks: what it saves was spent "
    "outside of the clock"
)
def time_outside_of_blocks(
    *, claimed_s: float, saved_s: float, hidden_s: float, against: str
) -> None: ...
@finding("{count:plural block}, beside which {share:.0%} as long passed", shows=CheckKind.ELAPSED)
def blocks_fill_their_time(*, count: int = 0, share: float = 0.0) -> None: ...
@finding("the clock of the device stands while the host queues its steps")
def clock_of_device_stands() -> None: ...
