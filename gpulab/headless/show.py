"""What a finished run prints: its result, its roofline, and where its file is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.headless.terminal import Terminal
from gpulab.model.accounting import chart
from gpulab.model.result import RunResult
from gpulab.views.results import result
from gpulab.views.roofline.reasons import reasons
from gpulab.views.roofline.view import roofline

if TYPE_CHECKING:
    from rich.console import Console

_HEIGHT, _MOST_WIDTH = 24, 160


def show(found: RunResult, shown: Terminal, *, json_on_stdout: bool) -> None:
    """Print the result of one run to stdout, or to stderr where JSON has that."""
    console = shown.err if json_on_stdout else shown.out
    console.print(result(found, shown.glyphs), soft_wrap=not console.is_terminal)
    if any(one.roofline for one in found.variants):
        draw(found, shown, console)
    # In one piece, so that it can be copied.
    console.print(*([f"run file: {found.run_file}"] if found.run_file else []), "", sep="\n", soft_wrap=True)


def draw(found: RunResult, shown: Terminal, console: Console) -> None:
    """Print the roofline of a run, as wide as the terminal is."""
    of = chart(found)
    if of is not None:
        width = min(console.width, _MOST_WIDTH)
        console.print("", roofline(of, shown.glyphs, width=width, height=_HEIGHT), sep="\n", soft_wrap=True)
        console.print(reasons(of.points, shown.glyphs), soft_wrap=not console.is_terminal)
