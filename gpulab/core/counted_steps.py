"""What the steps process is asked, and what it answers: a line of JSON each."""

from __future__ import annotations

import sys
from typing import Literal

import msgspec

from gpulab.core.jobs import Measure, TimeFunctions
from gpulab.core.payloads import Choice
from gpulab.core.values import Count, Name, Text

COMMAND = (sys.executable, "-P", "-m", "gpulab.engine.counted_steps")


class StepsJob(msgspec.Struct, frozen=True, kw_only=True):
    """Run `steps` steps of each of these variants, once they are warm.

    `wait`: a line on stdin begins the steps of each, after its "ready". It may hold their number,
    and there may be as many as `rounds` of them, each with a "done" of its own; 0 ends those of a
    variant early.
    """

    job: Measure | TimeFunctions
    variants: list[Name]
    choices: list[Choice] = []
    steps: Count = 1
    wait: bool = False
    rounds: Count = 1


class StepsState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the steps process: of a variant that is warm, whose steps come next; that has taken
    them, from `begin_ns` to `end_ns` on the system's clock; or that failed.
    """

    variant: Name
    state: Literal["ready", "done", "failed"]
    begin_ns: int = 0
    end_ns: int = 0
    steps: Count = 0
    message: Text = ""
