"""The last look at every line: what no view has made safe to show, or could not."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from gpulab.protocol.text import plain
from gpulab.views.text import to_ascii


class PlainFilter(LineFilter):
    """What a reader cannot see would drive the terminal: it is replaced, and every segment stays as wide as it was."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or segment.text.isprintable()
            else Segment(set_cell_size(plain(segment.text), cell_len(segment.text)), segment.style)
            for segment in segments
        ]


class AsciiFilter(LineFilter):
    """Borders, scroll bars, key names: what no view has made, and so no view can make plain."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.control or segment.text.isascii() else Segment(to_ascii(segment.text), segment.style)
            for segment in segments
        ]
