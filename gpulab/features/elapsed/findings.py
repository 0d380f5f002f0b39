"""Findings of the time that passed between blocks."""

from __future__ import annotations

from gpulab.core.findings import finding
from gpulab.core.statuses import CheckKind


@finding(
    "its step claims {claimed_s:seconds}, {saved_s:seconds} less than {against} for as much work, "
    "but {hidden_s:seconds} more passed outside of its blocks: what it saves was spent beside the "
    "clock"
)
def time_outside_of_blocks(
    *, claimed_s: float, saved_s: float, hidden_s: float, against: str
) -> None: ...
@finding("a block has {steps:plural step}, and {calibrated} were calibrated")
def block_of_other_steps(*, steps: int, calibrated: int) -> None: ...
@finding(
    "{ratio:.3g}x in the rounds, and {checked:.3g}x in blocks of as many steps that the checks time"
)
def saved_in_rounds_alone(*, ratio: float, checked: float) -> None: ...
@finding("{count:plural block}, beside which {share:.0%} as long passed", shows=CheckKind.ELAPSED)
def blocks_fill_their_time(*, count: int = 0, share: float = 0.0) -> None: ...
@finding("the clock of the device stands while the host queues its steps")
def clock_of_device_stands() -> None: ...
