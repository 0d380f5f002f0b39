"""What the lesson promises, and the last lines that the scenario printed."""

from __future__ import annotations

from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows
from gpulab.report.live import LiveReport
from gpulab.report.sentences import sentence_with_place


def _heading(run: LiveReport) -> tuple[str, str]:
    return run.report.title or run.report.scenario, ""


def _rows(run: LiveReport, width: int) -> Rows:
    return Rows(1, 1, 4)


def _draw(run: LiveReport, area: Area) -> None:
    report = run.report
    lines: list[tuple[str, str]] = [
        (sentence_with_place(failure.cause), "bold red") for failure in report.failures
    ]
    hidden = run.predicted is not None and report.under_way
    claim = "hidden until the verdict is final" if hidden else report.claim
    if report.claim:
        lines.append((f"claim: {claim}", ""))
    for text in [*report.log.head, *report.log.tail][-max(1, area.height - len(lines)) :]:
        lines.append((f"printed: {text}", ""))
    if not lines:
        lines.append(("nothing printed so far", "dim"))
    for row, (text, style) in enumerate(lines[: area.height]):
        area.put(row, 0, text, style)


_ABOUT = "The promise of the lesson, and the last lines that the scenario printed."
PRINTED = Panel("printed", _heading, _rows, _draw, _ABOUT)
