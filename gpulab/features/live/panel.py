"""What a panel of the live screen is: a heading, how many rows it takes, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulab.draw.area import Area
from gpulab.features.live.report import LiveDetail, Look, live_detail
from gpulab.report.report import RunReport, Time, VariantReport
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison


@dataclass(frozen=True)
class LiveRun:
    """What panels are drawn from: the report so far, and what it has no place for."""

    report: RunReport
    detail: LiveDetail
    predicted: float | None = None
    """How many times as fast someone said it would be."""

    @property
    def compared(self) -> Sequence[Comparison]:
        """Each variant with what it is measured against."""
        first: dict[str, Comparison] = {}
        for comparison in self.report.comparisons:
            first.setdefault(comparison.variant, comparison)
        return list(first.values())

    @property
    def main_comparison(self) -> Comparison | None:
        """The comparison that a panel for one of them is about: the best so far, or the first that
        has a number.
        """
        compared = self.compared
        best = next((entry for entry in compared if entry.variant == self.report.best), None)
        return best or max(
            compared,
            key=lambda entry: (entry.speedup is not None, entry.speedup or 0.0),
            default=None,
        )

    @property
    def timed(self) -> list[tuple[VariantReport, Time]]:
        return [
            (variant, time)
            for variant in self.report.variants
            if (time := variant.time_per(self.report.per))
        ]

    def looks(self, comparison: Comparison) -> Sequence[Look]:
        return self.detail.looks.get((comparison.variant, comparison.against), ())


def live_run(report: RunReport, state: RunState, predicted: float | None = None) -> LiveRun:
    """A run as of the last event of its state."""
    pairs = [(entry.variant, entry.against) for entry in report.comparisons]
    return LiveRun(report, live_detail(state, pairs), predicted)


@dataclass(frozen=True)
class Rows:
    """Without its heading: the fewest with which it is worth its place, and as many as it can
    use.
    """

    least: int
    most: int


@dataclass(frozen=True)
class Panel:
    """`rows` depend on what does not change during a run, so that nothing jumps."""

    name: str
    heading: Callable[[LiveRun], tuple[str, str]]
    """What it shows, at the left of its heading, and more at the right."""
    rows: Callable[[LiveRun, int], Rows]
    """At a width."""
    draw: Callable[[LiveRun, Area], None]
    about: str
    """How to read it, in two or three sentences."""


def name_width(run: LiveRun, most: int = 14) -> int:
    """Cells for the names of the variants, in every panel alike."""
    return min(max((len(variant.name) for variant in run.report.variants), default=0), most)
