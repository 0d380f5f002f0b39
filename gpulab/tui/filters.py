"""The last look at every line: what no view has made safe to show, or could not."""

from __future__ import annotations

from rich.cells import get_character_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from gpulab.core.text import plain
from gpulab.draw.ascii import to_ascii


class PlainFilter(LineFilter):
    """What a reader cannot see would drive the terminal; every segment stays as wide as it was."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.control or segment.text.isprintable()
            else Segment("".join(map(_as_wide, segment.text)), segment.style)
            for segment in segments
        ]


def _as_wide(mark: str) -> str:
    """The character, or where nobody sees it as many replacements as it has cells, which is none
    for most.
    """
    return mark if plain(mark) == mark else "\ufffd" * max(0, get_character_cell_size(mark))


class AsciiFilter(LineFilter):
    """All that is drawn, in ASCII: views and Textual draw with whatever shows best."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        line: list[Segment] = []
        for segment in segments:
            if segment.control or segment.text.isascii():
                line.append(segment)
                continue
            text = segment.text
            if text.startswith("±") and line and line[-1].text.endswith(" "):
                line[-1] = Segment(line[-1].text[:-1], line[-1].style)
                text = f" {text}"
            line.append(Segment(to_ascii(text), segment.style))
        return line
