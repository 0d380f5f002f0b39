"""What one measuring process leaves to the next, through those that forked them."""

from __future__ import annotations

import msgspec

from gpulab.core.payloads import Choice
from gpulab.engine.measure.plan import Plan
from gpulab.stats.series import Quantity


class CandidateFacts(msgspec.Struct, frozen=True):
    """A row of the measurement, without its build; `kept`: its builds are too expensive for every
    epoch.
    """

    name: str
    variant: str
    items: float
    steps: int
    step_s: float
    lead_in: int
    kept: bool


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """After its rounds. Nothing of a scenario crosses but names and numbers."""

    candidates: list[CandidateFacts] = []
    """Empty where the baseline failed its checks: nothing can be measured."""
    plan: Plan | None = None
    epochs: int = 0
    """Of the run so far."""
    values: list[tuple[Quantity, list[list[float]]]] = []
    """Of each quantity, its values in every epoch of the process."""
    exclusive: bool = False
    baseline_lost: bool = False
    first: str | None = None
    """The variant that was built before any other, and timed."""
    alone_s: dict[str, float] = {}
    """Seconds per item of the variants that were timed before all were built, with no other beside
    them.
    """
    slower: float | None = None
    """log(seconds of the baseline's steps after the rounds / when it was the first)."""
    time_alone: list[str] = []
    """What the next process times alone, in this order, before it builds them all."""
    measured_s: float = 0.0
    """Since the process had started and was warm."""
    start_s: float = 0.0
    """Before that; of the first process, what the next ones are expected to take."""
    checked: list[str] = []
    stateful: list[str] = []
    drawing: list[str] = []
    dtype: str | None = None
    """The baseline's declared one."""
    with_phases: list[str] = []
    declared: list[str] = []
    """Dtypes of declared work."""
    choices: list[Choice] = []
    """What variants have chosen with `gpulab.tune`."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Of a run, from one conductor to the next."""

    processes: list[tuple[Handover, float]] = []
    """What each measuring process handed over, and the seconds of its turn."""
    left_running: int = 0
    """Processes that a measuring one left; of the one that left most."""
    ended: bool = False
