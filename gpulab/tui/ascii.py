"""The last look at every line: whatever glyph Textual drew itself becomes ASCII too."""

from __future__ import annotations

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from gpulab.views.text import to_ascii


class AsciiFilter(LineFilter):
    """Borders, scroll bars, key names: what no view has made, and so no view can make plain."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.control or segment.text.isascii() else Segment(to_ascii(segment.text), segment.style)
            for segment in segments
        ]
