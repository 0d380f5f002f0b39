"""What a panel of the live screen is: a heading, how many rows it takes, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.draw.area import Area

if TYPE_CHECKING:
    from gpulab.report.live import LiveReport

BASELINE, VARIANT = "blue", "cyan"
_HIGHEST = 8
"""Rows of a bar."""


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
    heading: Callable[[LiveReport], tuple[str, str]]
    """What it shows, at the left of its heading, and more at the right."""
    rows: Callable[[LiveReport, int], Rows]
    """At a width."""
    draw: Callable[[LiveReport, Area], None]
    about: str
    """How to read it, in two or three sentences."""
    beside_variants: int | None = None
    """Rows that it has beside one a variant; None where it has no row for each."""

    def missing(self, run: LiveReport, height: int) -> str:
        """Return how many variants have no row of this height; empty where all have one."""
        if self.beside_variants is None or not run.is_prepared:
            return ""
        count = len(run.variants)
        shown = max(0, height - self.beside_variants)
        return f"{shown} of {count} variants" if shown < count else ""


def style_of(name: str, baseline: str | None) -> str:
    """Return the colour of the baseline or of a variant."""
    return BASELINE if name == baseline else VARIANT


def name_width(run: LiveReport, width: int) -> int:
    """Cells for the names of the variants, in panels of this width alike: in full where that leaves
    most of it for what is drawn.
    """
    longest = max((len(variant.name) for variant in run.report.variants), default=0)
    return min(longest, max(12, width // 3))


@dataclass(frozen=True)
class Band:
    """The rows of a variant: `row` is the first, `height` those of its bar, `middle` that of its
    words.
    """

    row: int
    height: int
    gap: int = 0
    """Empty rows below it."""

    @property
    def middle(self) -> int:
        return self.row + (self.height - 1) // 2


def bands(count: int, height: int) -> list[Band]:
    """So many bars as high as there are rows, with a gap between them from two rows each on, up to
    as high as the highest bar; those that have no row are left out.
    """
    count = min(count, height)
    if count <= 0:
        return []
    each = min((height + 1) // count, 2 * _HIGHEST)
    bar = max(1, min(each - 1, _HIGHEST))
    return [Band(place * each, bar, each - bar) for place in range(count)]
