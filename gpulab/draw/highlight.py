"""Code in the colours of its language."""

from __future__ import annotations

from gpulab.draw.blocks import Text


def highlighted(code: str, language: str) -> Text:
    """The code in the sixteen colours of a terminal."""
    from rich.syntax import Syntax

    coloured = Syntax("", language, theme="ansi_dark").highlight(code)
    return Text(coloured.plain, spans=coloured.spans)
