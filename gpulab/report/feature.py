"""What a feature of the lab adds to a run: plain functions, which the fold and the report call in
the order of `gpulab.features`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeVar

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.events import Event
from gpulab.core.findings import Finding
from gpulab.core.statuses import Shows
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.samples import SampleView
from gpulab.report.state import Keep, RunState, VariantState
from gpulab.stats.comparison import Comparison

T = TypeVar("T")


@dataclass
class Draft:
    """A report under construction: steps of `build_report` read the results of earlier ones."""

    state: RunState
    samples: SampleView
    features: Sequence[Feature]
    now: float
    under_way: bool
    """Whether nothing is final."""
    control: Comparison | None = None
    comparisons: list[Comparison] = field(default_factory=list)
    variants: list[VariantReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """What weakens the result."""
    _cached: dict[Any, Any] = field(default_factory=dict)

    def cached(self, make: Callable[[RunState], T]) -> T:
        """The result of a function of the state, cached for this report."""
        if make not in self._cached:
            self._cached[make] = make(self.state)
        made: T = self._cached[make]
        return made

    def variant(self, name: str) -> VariantReport | None:
        return next((variant for variant in self.variants if variant.name == name), None)


def _nothing(*_: object) -> tuple[()]:
    return ()


def _none(_: object) -> None:
    return None


def _add_to_variant(_: Draft, __: VariantState, report: VariantReport) -> VariantReport:
    return report


def _add_to_comparison(_: Draft, comparison: Comparison) -> Comparison:
    return comparison


def _add_to_run(_: Draft, report: RunReport) -> RunReport:
    return report


class Section(Enum):
    """The section of something, in the order in which a result is read."""

    PROGRAM = auto()
    """What a followed program did, above what was sampled meanwhile."""
    RANKS = auto()
    """What its ranks did."""
    PANELS = auto()
    """Those on top of its live screen."""
    TRIED = auto()
    """The answer of a run that tries something; the run of all together comes with the report."""
    FIGURE = auto()
    """That of a lesson, and no other place."""
    COUNTERS = auto()
    """What the hardware counted."""
    RESOURCES = auto()
    ALONE = auto()
    """What was sampled of variants that ran alone."""
    TIME = auto()
    """Where it goes."""
    OPERATIONS = auto()
    TRACES = auto()
    JOBS = auto()


@dataclass(frozen=True)
class View:
    """A view of a feature: a function of its view, such as "ranks.view:ranks", that takes the
    report, and has None where there is nothing to show; or a panel.
    """

    place: str
    section: Section
    lesson: Shows | None = None
    """Of which lessons it is the figure."""
    flag: str = ""
    """The field of the options that asks for it in a short result."""


@dataclass(frozen=True)
class Feature:
    """Each function adds its part to its last argument, or returns it unchanged."""

    name: str
    variant_part: type[msgspec.Struct] | None = None
    run_part: type[msgspec.Struct] | None = None
    """What it adds to the report of each variant, and of the run; it has a default for all."""
    keeps: Mapping[type[Event], Keep] = field(default_factory=dict)
    """Types of events of which more than the last one is kept."""
    folds: Mapping[type[Event], Callable[[RunState, Any], None]] = field(default_factory=dict)
    """Each updates the feature's own part of the state from one event."""
    derive_events: Callable[[Draft], Iterable[Event]] = _nothing
    """Events derived from the measurement: a variant, or the run, is wrong or invalid."""
    step_time: Callable[[VariantState], Estimate | None] = _none
    """The time of a variant's step, where it is not the median of its blocks."""
    add_to_variant: Callable[[Draft, VariantState, VariantReport], VariantReport] = _add_to_variant
    add_to_comparison: Callable[[Draft, Comparison], Comparison] = _add_to_comparison
    findings: Callable[[Draft], Iterable[Finding]] = _nothing
    """What weakens the result."""
    add_trust: Callable[[Draft, Comparison], Comparison] = _add_to_comparison
    """Grade a comparison by all findings."""
    add_to_run: Callable[[Draft, RunReport], RunReport] = _add_to_run
    hang: Callable[[RunState], Finding | None] = _none
    """What a followed program waits for now, for long enough to say so."""
    views: Sequence[View] = ()
