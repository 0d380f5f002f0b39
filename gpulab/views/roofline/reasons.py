"""What holds each variant back, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gpulab.model.roofline import Point
from gpulab.views.roofline.plot import letter
from gpulab.views.text import Glyphs

_NAMES = {"cache": "cache-resident"}


def reasons(points: Sequence[Point], glyphs: Glyphs) -> Text:
    """A line a point: its letter, its bound, and the evidence for it."""
    text = Text()
    for index, one in enumerate(points):
        name = _NAMES.get(one.bound, f"{one.bound}-bound")
        text.append(glyphs(f"{letter(index)} {one.variant}: "))
        text.append(name, "bold")
        text.append(glyphs(f": {one.why}\n"))
    return text
