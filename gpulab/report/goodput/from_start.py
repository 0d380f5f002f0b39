"""Goodput of whole jobs from process start, as a part of the report."""

from __future__ import annotations

import msgspec


class JobGoodput(msgspec.Struct, frozen=True, kw_only=True):
    """A job of one variant: so many steps, and the seconds of everything from process start to the last of them.

    `seconds` are by cause: the parts of the start, build, what the first step and the warm-up take longer than steady
    steps, then the parts of all steps; they sum to `total_s`. Without a profile the steps are one part, and `goodput`,
    useful seconds over all of them, is None. `speedup` is against the baseline's job; the job is ahead of it from
    `ahead_after` steps of the baseline on, None where it never is.
    """

    variant: str
    steps: int
    seconds: dict[str, float]
    total_s: float
    goodput: float | None = None
    reliable: bool | None = None
    speedup: float | None = None
    ahead_after: int | None = None


class FromStart(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of all variants that were measured, for the same items: `steps` steps of the baseline."""

    steps: int
    start_known: bool
    """Whether interpreter, imports, device and file were timed: not in run files from before they were recorded."""
    jobs: list[JobGoodput] = []
