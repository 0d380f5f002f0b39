"""The consoles of the command line: the last look at whatever goes to a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from gpulab.protocol.text import plain


class PlainConsole(Console):
    """Prints what it is given: no markup, no emoji codes, and of every text only what a reader can see."""

    def __init__(self, file: TextIO) -> None:
        # Names, texts and errors come from scenarios: nothing of them is markup, an emoji code or a number to colour.
        super().__init__(file=file, markup=False, emoji=False, highlight=False, soft_wrap=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            safe = segment.control or segment.text.isprintable()
            yield segment if safe else Segment(plain(segment.text), segment.style)

    def on_broken_pipe(self) -> None:
        raise  # Rich would end the program, with 1
