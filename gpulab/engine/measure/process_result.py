"""What one measuring process leaves to the next: names and numbers, never an object of a scenario.

The first process checks, calibrates and plans; the others continue from its result.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpulab.core.payloads import Choice
from gpulab.engine.measure.plan import Plan
from gpulab.stats.series import Quantity


class CandidateFacts(msgspec.Struct, frozen=True):
    """A candidate without its build. `kept`: its build is too expensive for every epoch."""

    name: str
    variant: str
    items: float
    steps: int
    step_s: float
    lead_in: int
    kept: bool


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one measuring process, sent after its rounds."""

    candidates: list[CandidateFacts] = []
    """Empty where the baseline failed its checks: nothing can be measured."""
    plan: Plan | None = None
    epochs: int = 0
    """Epochs of the run so far."""
    values: list[tuple[Quantity, list[list[float]]]] = []
    """Of each quantity, its values in every epoch of this process."""
    exclusive: bool = False
    """Whether variants run one at a time."""
    baseline_lost: bool = False
    first: str | None = None
    """The variant that was built, and timed, before any other."""
    alone_s: dict[str, float] = {}
    """Seconds per item of the variants that were timed before all were built."""
    slower: float | None = None
    """log(seconds of the baseline's steps after the rounds / when it was the first)."""
    time_alone: list[str] = []
    """Variants that the next process times alone, in this order, before it builds them all."""
    measured_s: float = 0.0
    """Seconds of the rounds, with their builds."""
    start_s: float = 0.0
    """Seconds before them; of the first process, what the next ones are expected to take."""
    checked: set[str] = set()
    stateful: set[str] = set()
    drawing: set[str] = set()
    """Variants that draw random numbers in a step."""
    widened: dict[str, float] = {}
    """By variant the error that its output may have where float64 was asked."""
    dtype: str | None = None
    """The baseline's declared dtype."""
    with_phases: set[str] = set()
    declared: set[str] = set()
    """Dtypes of declared work."""
    choices: list[Choice] = []
    """What variants have chosen with `gpulab.tune`."""


class RunResults(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a run so far, from one fork server to the next."""

    done: int = 0
    """Measuring processes that have ended."""
    before: ProcessResult | None = None
    """The result of the last one."""
    rule: Any = None
    """The stop rule, which has seen the results of all of them."""
    left_running: int = 0
    """Processes that a measuring one left running; of the one that left most."""
    profiled: bool = False
    """Whether the variants were profiled already."""
    ended: bool = False
