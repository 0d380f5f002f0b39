"""The ceilings of a device as a table: what was measured, how steadily, and what its datasheet
says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from gpulab.core.payloads import MEASURED, Ceiling
from gpulab.core.units import plural, rate, seconds, times
from gpulab.draw.table import columns_table
from gpulab.report.report import RunReport
from gpulab.report.sentences import lines, sentence, sentence_with_place

_GAP = 2
_HEADS = {
    "name": "ceiling",
    "best": "best",
    "median": "median",
    "spread": "spread",
    "source": "source",
    "mhz": "SM MHz",
}
_METHOD = "method"
_DISPENSABLE = (_METHOD, "mhz", "median", "spread")
"""Columns that go where the width does not hold them all, the first of them first. Names are never
cut.
"""
_METHOD_WIDTH = 24


def ceilings(report: RunReport) -> RenderableType:
    """Header, a row a ceiling, and what must be known of them."""
    parts: list[RenderableType] = []
    if report.device:
        threads = "" if report.on_gpu else f", {plural(report.device.threads, 'thread')}"
        parts += [Text(f"{report.device.name}{threads}", "bold"), ""]
    if report.ceilings and report.ceilings.ceilings:
        parts += [CeilingTable(report.ceilings.ceilings), ""]
        parts += (
            [Text(f"measured at {report.ceilings.at} (UTC)", "dim")] if report.ceilings.at else []
        )
    if report.reason:
        parts.append(Text(f"{report.outcome}: {sentence_with_place(report.reason)}", "bold red"))
    parts += [Text(line) for line in lines(report.explanations)]
    parts += [Text(f"note: {line}", "yellow") for line in lines(report.findings)]
    return Group(*parts)


def amount(ceiling: Ceiling, value: float) -> str:
    """A value of a ceiling in its unit."""
    return seconds(value) if ceiling.unit == "s" else f"{rate(value)}{ceiling.unit}"


@dataclass(frozen=True)
class CeilingTable:
    """A row a ceiling, with as many columns as there is room for."""

    ceilings: Sequence[Ceiling]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [_cells(ceiling) for ceiling in self.ceilings]
        heads = {**_HEADS, _METHOD: _METHOD}
        widths = {
            name: max(cell_len(head), *(cell_len(row[name]) for row in rows))
            for name, head in heads.items()
        }
        widths[_METHOD] = min(widths[_METHOD], _METHOD_WIDTH)  # it may be folded
        shown = [
            name
            for name in heads
            if name != "mhz" or any(ceiling.sm_mhz for ceiling in self.ceilings)
        ]
        for name in _DISPENSABLE:
            if sum(widths[column] + _GAP for column in shown) - _GAP <= options.max_width:
                break
            shown = [column for column in shown if column != name]
        table = columns_table()
        for name in shown:
            left = name in ("name", "source", _METHOD)
            table.add_column(
                heads[name],
                justify="left" if left else "right",
                no_wrap=name != _METHOD,
                overflow="fold",
            )
        for ceiling, row in zip(self.ceilings, rows, strict=True):
            table.add_row(*(Text(row[name], _style(ceiling, name)) for name in shown))
        yield table


def _cells(ceiling: Ceiling) -> dict[str, str]:
    measured = ceiling.source == MEASURED
    ratio = max(ceiling.best, ceiling.median) / min(ceiling.best, ceiling.median)
    return {
        "name": ceiling.name,
        "best": amount(ceiling, ceiling.best),
        "median": amount(ceiling, ceiling.median) if measured else "",
        "spread": f"{ceiling.spread:.1%}" if ceiling.samples > 1 else "",
        "source": ceiling.source if ceiling.steady else f"unsteady {times(ratio)}",
        "mhz": f"{ceiling.sm_mhz:,.0f}" if ceiling.sm_mhz else "",
        _METHOD: sentence(ceiling.method) if ceiling.method else "",
    }


def _style(ceiling: Ceiling, column: str) -> str:
    if column == "source":
        return "dim" if ceiling.source != MEASURED else "" if ceiling.steady else "yellow"
    return "dim" if column == _METHOD else ""
