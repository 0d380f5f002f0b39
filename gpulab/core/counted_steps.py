"""What the steps process is asked, and what it answers: a line of JSON each."""

from __future__ import annotations

import sys
from enum import StrEnum

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


class State(StrEnum):
    """What a line says of a variant."""

    READY = "ready"
    """It is built and warm; its steps come next."""
    DONE = "done"
    FAILED = "failed"


class StepsState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the steps process. `begin_ns` and `end_ns` are of the system's clock."""

    variant: Name
    state: State
    begin_ns: int = 0
    end_ns: int = 0
    steps: Count = 0
    message: Text = ""
