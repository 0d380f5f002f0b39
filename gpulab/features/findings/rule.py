"""A rule: one declaration of what makes a step slow, when it holds, and what to do.

A rule reads one step of a report and gives a `Match`, a `NotMeasured` where a measurement that it
needs was not made, or None where it does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpulab.core.findings import Declaration, Value
from gpulab.features.findings.advice import Evidence, Source
from gpulab.features.findings.step import Step

LAUNCHED = ("launch-bound", "other", "sync", "alloc")
"""Parts of a step in which a device has nothing to do because of the host."""
COMPUTED = ("useful", "other busy")


@dataclass(frozen=True)
class Threshold:
    """A number that decides, and where it is from."""

    value: float
    source: str


@dataclass(frozen=True)
class Fix:
    """A change to make, in words and in code, and the lesson that shows it."""

    change: str
    code: tuple[str, str, str]
    lesson: str


@dataclass(frozen=True)
class Match:
    """A rule holds: the values of its sentence, the share of the step that it is about, and the
    numbers behind both. `takes` are the parts of the step that the share is of, `fix` is what to
    change where that is not what the rule says.
    """

    values: Mapping[str, Value]
    share: float
    evidence: tuple[Evidence, ...]
    takes: tuple[str, ...] = COMPUTED
    fix: Fix | None = None


@dataclass(frozen=True)
class NotMeasured:
    """The measurement that a rule lacks, and the flags that bring it."""

    measurement: str
    flags: str = ""


RuleResult = Match | NotMeasured | None


@dataclass(frozen=True)
class Rule:
    """`fallback` is held against what the others left unexplained."""

    words: Declaration[Any]
    judge: Callable[[Step], RuleResult]
    change: str
    code: tuple[str, str, str]
    lesson: str
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)
    fallback: bool = False

    @property
    def name(self) -> str:
        return self.words.code


def profiled(name: str, value: float, unit: str = "share") -> Evidence:
    return Evidence(name=name, value=value, unit=unit, source=Source.PROFILED)


def measured(name: str, value: float, unit: str = "share") -> Evidence:
    return Evidence(name=name, value=value, unit=unit, source=Source.MEASURED)


def static(name: str, value: float, unit: str = "share") -> Evidence:
    return Evidence(name=name, value=value, unit=unit, source=Source.STATIC)


def by_telemetry(name: str, value: float, unit: str = "share") -> Evidence:
    return Evidence(name=name, value=value, unit=unit, source=Source.TELEMETRY)


def declared(name: str, value: float, unit: str) -> Evidence:
    return Evidence(name=name, value=value, unit=unit, source=Source.DECLARED)
