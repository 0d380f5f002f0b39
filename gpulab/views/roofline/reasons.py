"""What holds each variant back, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gpulab.analysis.bound import BoundKind
from gpulab.analysis.roofline import Point
from gpulab.views.findings import sentence
from gpulab.views.roofline.plot import letter
from gpulab.views.text import Glyphs

_WORDS = {
    BoundKind.CACHE: "cache-resident",
    BoundKind.PAGE_FAULTS: "page-fault-bound",
    BoundKind.PREEMPTED: "preempted",
    BoundKind.UNEXPLAINED: "unexplained",
    BoundKind.UNKNOWN: "unknown",
}


def reasons(points: Sequence[Point], glyphs: Glyphs, *, letters: bool = True) -> Text:
    """A line a point: its letter beside a plot, its bound, and the evidence for it."""
    text = Text()
    for index, point in enumerate(points):
        bound = _WORDS.get(point.bound, f"{point.bound}-bound")
        text.append(glyphs(f"{f'{letter(index)} ' * letters}{point.variant}: "))
        text.append(bound, "bold")
        text.append(glyphs(f": {sentence(point.reason)}") + "\n")
    return text
