"""A program under way: its steps so far."""

from __future__ import annotations

from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows
from gpulab.features.program.view import rows
from gpulab.report.live import LiveReport

_LABEL = 15
_ROWS = 8


def _heading(run: LiveReport) -> tuple[str, str]:
    program = run.report.program
    return "Steps", f"{program.steps:,}" if program and program.steps else ""


def _rows(run: LiveReport, width: int) -> Rows:
    return Rows(3, _ROWS, _ROWS)


def _draw(run: LiveReport, area: Area) -> None:
    program = run.report.program
    if program is None:
        return
    lines = list(rows(run.report, program))
    if not program.steps:
        lines = [("steps", "none so far: the first one ends with an optimizer or a module")]
    for row, (name, words) in enumerate(lines[: area.height]):
        area.put(row, 0, name, "bold")
        area.put(row, _LABEL, words)


_ABOUT = "Steps of the program so far, as in its result."
PROGRAM = Panel("program", _heading, _rows, _draw, _ABOUT)
