"""A run as text: into the clipboard, as far as the terminal takes it, and into a file beside the
run file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from gpulab.core.files import write_whole
from gpulab.core.text import plain
from gpulab.core.units import plural
from gpulab.draw.blocks import Block
from gpulab.report.report import RunReport
from gpulab.session.run_files import at_home
from gpulab.show.display import MARKS, rendered
from gpulab.show.parts import Shown, Target, result
from gpulab.show.short_result import short_result
from gpulab.show.terminal import plain_text


def copy(
    app: App[int],
    report: RunReport,
    together: RunReport | None,
    predicted: Sequence[Block],
    *,
    whole: bool,
    keeps: bool,
) -> str:
    """Copy the result in short, or the `whole` with all tables, as a block of code in Markdown;
    returns what to say of it.

    `together`: the run of all fixes that gained. `predicted`: the answer to the guesses. `keeps`:
    into a file as well.
    """
    path = Path(report.run_file).with_suffix(".md")
    if whole:
        shown = Shown(report, Target.TERMINAL, together=together, predicted=predicted)
        drawn: Block = result(shown)
    else:
        drawn = short_result(report, together=together, predicted=predicted)
    what = "the whole result" if whole else "the result"
    return copy_drawn(app, drawn, path if keeps else None, at_home(path), what)


def write_page(report: RunReport, *, beside: bool) -> str:
    """Write a page beside the run file, or into the current folder, by the name of the scenario.
    Returns what to say of it.
    """
    path = Path(report.run_file).with_suffix(".html")
    if not beside:
        path = Path(f"{Path(report.scenario).stem}.html").absolute()
    try:
        if not beside and path.exists() and MARKS[".html"] not in path.read_bytes():
            return f"{at_home(path)} is there, and gpulab has not written it"
        write_whole(path, rendered(report, "html").encode(errors="replace"))
    except OSError as error:
        return f"{at_home(path)} cannot be written: {error.strerror or error}"
    return f"page: {at_home(path)}"


def copy_drawn(
    app: App[Any], drawn: Block, path: Path | None, name: str, what: str = "the comparison"
) -> str:
    """Copy a block of code in Markdown, into a file of that name as well; `what` it is called in
    what is returned, to be said of it.
    """
    lines = plain_text(drawn, 100).split("\n")
    text = plain("\n".join(["```", *lines, "```", ""]))
    app.copy_to_clipboard(text)
    copied = f"copied {what}, {plural(len(lines), 'line')}"
    if path is None or not getattr(app, "keeps_files", True):
        return copied
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return f"{copied}; {at_home(path)} cannot be written: {error.strerror or error}"
    return f"{copied}, and in {name}"
