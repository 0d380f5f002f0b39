"""What holds each variant back, in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from gpulab.analysis.bound import BoundKind
from gpulab.analysis.roofline import Cause, Point
from gpulab.report.report import VariantReport
from gpulab.views.findings import sentence
from gpulab.views.roofline.plot import letter
from gpulab.views.text import Glyphs

_WORDS = {
    BoundKind.CACHE: "cache-resident",
    BoundKind.PAGE_FAULTS: "page-fault-bound",
    BoundKind.WAITING: "waiting",
    BoundKind.PREEMPTED: "preempted",
    BoundKind.UNEXPLAINED: "unexplained",
    BoundKind.UNKNOWN: "unknown",
}


def marked(cause: Cause | Point) -> str:
    """The bound, with a mark where it is unsure."""
    return f"{cause.bound}{'?' * bool(cause.or_else)}"


def reasons(points: Sequence[Point], glyphs: Glyphs, *, letters: bool = True) -> Text:
    """A line a point: its letter beside a plot, its bound, and the evidence for it."""
    text = Text()
    for index, point in enumerate(points):
        _add(text, f"{f'{letter(index)} ' * letters}{point.variant}", point, glyphs)
    return text


def causes(variants: Iterable[VariantReport], glyphs: Glyphs) -> Text:
    """The same of variants that no roofline has a point for."""
    text = Text()
    for variant in variants:
        if variant.cause and not variant.roofline:
            _add(text, variant.name, variant.cause, glyphs)
    return text


def _add(text: Text, name: str, cause: Cause | Point, glyphs: Glyphs) -> None:
    words = [_WORDS.get(kind, f"{kind}-bound") for kind in (cause.bound, *cause.or_else)]
    unsure = f" (unsure: {' or '.join(words[1:])}, within the intervals of times and roofs)" if cause.or_else else ""
    text.append(glyphs(f"{name}: "))
    text.append(f"{words[0]}{'?' * bool(cause.or_else)}", "bold")
    text.append(glyphs(f": {sentence(cause.reason)}{unsure}") + "\n")
