"""What a panel of the live screen is: a heading, how many rows it takes, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpulab.draw.area import Area
from gpulab.features.live.report import LiveDetail, live_detail
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.state import RunState
from gpulab.stats.comparison import Comparison

_SHORTEST_NAMES = 12
_HIGHEST = 8
"""Rows of a bar."""


@dataclass(frozen=True)
class LiveRun:
    """What panels are drawn from: the report so far, and what it has no place for."""

    report: RunReport
    detail: LiveDetail
    predicted: float | None = None
    """How many times as fast someone said it would be."""

    @property
    def main_comparison(self) -> Comparison | None:
        """The comparison that a panel for one of them is about: the best so far, or the first that
        has a number.
        """
        compared = self.report.first_comparisons
        best = next((entry for entry in compared if entry.variant == self.report.best), None)
        return best or max(
            compared,
            key=lambda entry: (entry.speedup is not None, entry.speedup or 0.0),
            default=None,
        )

    @property
    def variants(self) -> list[VariantReport]:
        """Those that this machine can run."""
        return [entry for entry in self.report.variants if entry.name not in self.detail.missing]

    @property
    def is_prepared(self) -> bool:
        """Whether the first process has been measured."""
        return not self.report.under_way or any(self.detail.times_s.values())

    @property
    def stage_s(self) -> float:
        """Since when its stage goes on."""
        stages = self.detail.stages
        before_s = stages[-1].t - self.detail.started if stages else 0.0
        return max(0.0, self.report.progress.elapsed_s - before_s)

    def ratios(self, comparison: Comparison) -> Sequence[float]:
        """The log-ratio of each process."""
        return self.detail.ratios.get((comparison.variant, comparison.against), ())


def live_run(report: RunReport, state: RunState, predicted: float | None = None) -> LiveRun:
    """A run as of the last event of its state."""
    pairs = [(entry.variant, entry.against) for entry in report.comparisons]
    return LiveRun(report, live_detail(state, pairs), predicted)


@dataclass(frozen=True)
class Rows:
    """Without its heading: the fewest with which it is worth its place, with how many it says all
    that it has to say, and up to how many it can grow, `step` at a time.
    """

    least: int
    enough: int
    most: int
    step: int = 1


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
    beside_variants: int | None = None
    """Rows that it has beside one a variant; None where it has no row for each."""

    def missing(self, run: LiveRun, height: int) -> str:
        """How many variants have no row of this height; empty where all have one."""
        if self.beside_variants is None or not run.is_prepared:
            return ""
        count = len(run.variants)
        shown = max(0, height - self.beside_variants)
        return f"{shown} of {count} variants" if shown < count else ""


def name_width(run: LiveRun, width: int) -> int:
    """Cells for the names of the variants, in panels of this width alike: in full where that leaves
    most of it for what is drawn.
    """
    longest = max((len(variant.name) for variant in run.report.variants), default=0)
    return min(longest, max(_SHORTEST_NAMES, width // 3))


@dataclass(frozen=True)
class Band:
    """The rows of a variant: `row` is the first, `height` those of its bar, `middle` that of its
    words.
    """

    row: int
    height: int

    @property
    def middle(self) -> int:
        return self.row + (self.height - 1) // 2


def bands(count: int, height: int) -> list[Band]:
    """So many bars as high as there are rows, with a gap between them from two rows each on; those
    that have no row are left out.
    """
    count = min(count, height)
    if count <= 0:
        return []
    each = min((height + 1) // count, _HIGHEST + 1)
    bar = max(1, each - 1)
    return [Band(place * each, bar) for place in range(count)]
