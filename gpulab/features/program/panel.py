"""A program under way: its steps so far, and their time window by window."""

from __future__ import annotations

from gpulab.core.units import seconds
from gpulab.draw.area import Area
from gpulab.draw.bars import tall_levels
from gpulab.draw.panel import Panel, Rows
from gpulab.features.program.view import rows
from gpulab.report.live import LiveReport

_LABEL = 15
_ROWS, _CHART = 7, 4


def _heading(run: LiveReport) -> tuple[str, str]:
    program = run.report.program
    return "Steps", f"{program.steps:,}" if program and program.steps else ""


def _rows(run: LiveReport, width: int) -> Rows:
    return Rows(3, _ROWS + _CHART, _ROWS + 2 * _CHART)


def _draw(run: LiveReport, area: Area) -> None:
    program = run.report.program
    if program is None:
        return
    lines = rows(run.report, program)
    if not program.steps:
        lines = [("steps", "none so far: the first one ends with an optimizer or a module")]
    for row, (name, words) in enumerate(lines[: area.height]):
        area.put(row, 0, name, "bold")
        area.put(row, _LABEL, words)
    _draw_chart(program.recent_s, area, len(lines) + 1)


def _draw_chart(recent: list[float], area: Area, top: int) -> None:
    """A column for each window, as high as its step is long."""
    height = area.height - top
    if height < 1 or not recent:
        return
    shown = recent[-(area.width - _LABEL) :]
    longest_s = max(shown)
    area.put(top, 0, seconds(longest_s), "dim")
    for column, step_s in enumerate(shown):
        for row, cell in enumerate(tall_levels(step_s, longest_s, height)):
            area.put(top + height - 1 - row, _LABEL + column, cell, "cyan")


_ABOUT = (
    "Steps of the program so far, as in its result; below them a column for each window of plain "
    "steps, as high as its step is long."
)
PROGRAM = Panel("program", _heading, _rows, _draw, _ABOUT)
