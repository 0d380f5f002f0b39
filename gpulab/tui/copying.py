"""A run as text: into the clipboard, as far as the terminal takes it, and into a file beside the
run file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from textual.app import App

from gpulab.core.files import write_whole
from gpulab.core.text import plain
from gpulab.draw.blocks import Block
from gpulab.report.report import RunReport
from gpulab.session.run_files import at_home
from gpulab.show import terminal
from gpulab.show.forms import rendered
from gpulab.show.parts import Shown, Target, result

_WIDTH = 100


def copy(
    app: App[int], report: RunReport, together: RunReport | None = None, *, keeps: bool = True
) -> str:
    """Markdown: the table as a block of code. Returns what to say of it.

    `together`: the run of all fixes that gained. `keeps`: into a file as well.
    """
    path = Path(report.run_file).with_suffix(".md")
    drawn = result(Shown(report, Target.TERMINAL, together=together, verbose=False))
    return copy_drawn(app, drawn, path if keeps else None, at_home(path))


def write_page(report: RunReport, *, keeps: bool) -> str:
    """Write a page beside the run file, unless nothing is kept. Returns what to say of it."""
    path = Path(report.run_file).with_suffix(".html")
    if not keeps:
        return f"nothing is written here: gpulab --replay {report.scenario} --export page.html"
    try:
        write_whole(path, rendered(report, "html").encode(errors="replace"))
    except OSError as error:
        return f"{at_home(path)} cannot be written: {error.strerror or error}"
    return f"page: {at_home(path)}"


def copy_drawn(app: App[Any], drawn: Block, path: Path | None, name: str) -> str:
    """A block of code in Markdown, into a file of that name as well. Returns what to say of it."""
    options = app.console.options.update(width=_WIDTH, height=None, highlight=False, markup=False)
    rows = app.console.render_lines(terminal.drawn(drawn), options, pad=False)
    lines = ["".join(segment.text for segment in row).rstrip() for row in rows]
    text = plain("\n".join(["```", *lines, "```", ""]))
    app.copy_to_clipboard(text)
    if path is None or not getattr(app, "keeps_files", True):
        return "copied"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"copied; {at_home(path)} cannot be written: {error.strerror or error}"
    return f"copied, and in {name}"
