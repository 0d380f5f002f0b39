"""Code in the colours of its language."""

from __future__ import annotations

from gpulab.draw.blocks import Text


def highlighted(code: str, language: str) -> Text:
    """The code in the sixteen colours of a terminal."""
    from rich.syntax import Syntax

    coloured = Syntax("", language, theme="ansi_dark").highlight(code)
    styles = [""] * len(coloured.plain)
    for span in coloured.spans:
        styles[span.start : span.end] = [str(span.style)] * (span.end - span.start)
    text = Text()
    start = 0
    for at in range(1, len(styles) + 1):
        if at == len(styles) or styles[at] != styles[start]:
            text.append(coloured.plain[start:at], styles[start])
            start = at
    return text
