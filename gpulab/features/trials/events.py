"""Changes that were tried in the running steps of a program."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from gpulab.core.events import Event
from gpulab.core.values import Count, Line, Seconds, StepTime

MOST_CHANGES, MOST_PAIRS = 100, 100


class TrialPair(msgspec.Struct, frozen=True, array_like=True):
    """Seconds of a step in a window as it is, and in one with the change; of the delay that this
    one had, and of the part in the window as it is. `in_effect`: whether the change was read back.
    """

    plain_s: StepTime
    changed_s: StepTime
    delay_s: Seconds
    part_s: Seconds
    in_effect: bool


class TriedChange(msgspec.Struct, frozen=True):
    """A part that was delayed, or a fix that was switched on, in every other window.

    `was` and `now` are what was read of its setting; `alters` says what else may change with it.
    """

    kind: Literal["part", "fix"]
    name: Line
    why_not: Line
    was: Line
    now: Line
    alters: Line
    pairs: Annotated[list[TrialPair], msgspec.Meta(max_length=MOST_PAIRS)]


class TrialsMeasured(Event, frozen=True, kw_only=True):
    """All that was tried in one process so far."""

    pid: Count
    changes: Annotated[list[TriedChange], msgspec.Meta(max_length=MOST_CHANGES)]
