"""The ceilings of a device as a table: what was measured, how steadily, and what its datasheet
says.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.payloads import MEASURED
from gpulab.core.units import plural, rate, seconds, times
from gpulab.draw.blocks import Block, Fitted, Group, Table, Text, columns_table
from gpulab.draw.table import Column, fitting
from gpulab.features.roofline.events import Ceiling
from gpulab.report.report import RunReport
from gpulab.report.sentences import lines, sentence, sentence_with_place

_SOURCE = "source"
_METHOD = "method"
_METHOD_WIDTH = 24


def ceilings(report: RunReport) -> Block:
    """Header, a row a ceiling, and what must be known of them."""
    parts: list[Block] = []
    if report.device:
        threads = "" if report.on_gpu else f", {plural(report.device.threads, 'thread')}"
        parts += [Text(f"{report.device.name}{threads}", "bold"), ""]
    if report.ceilings and report.ceilings.ceilings:
        parts += [ceiling_table(report.ceilings.ceilings), ""]
        if report.ceilings.at:
            parts.append(Text(f"measured at {report.ceilings.at} (UTC)", "dim"))
    if report.reason:
        parts.append(Text(f"{report.outcome}: {sentence_with_place(report.reason)}", "bold red"))
    parts += [Text(line) for line in lines(report.explanations)]
    parts += [Text(f"note: {line}", "yellow") for line in lines(report.findings)]
    return Group(*parts)


def amount(ceiling: Ceiling, value: float) -> str:
    """A value of a ceiling in its unit."""
    return seconds(value) if ceiling.unit == "s" else f"{rate(value)}{ceiling.unit}"


def ceiling_table(ceilings: Sequence[Ceiling]) -> Fitted:
    """A row a ceiling, with as many columns as there is room for."""
    return Fitted(lambda width: [_table(ceilings, width)])


def _table(ceilings: Sequence[Ceiling], width: int) -> Table:
    table = columns_table()
    shown = fitting(_columns(ceilings), width)
    for column in shown:
        table.add_column(
            column.head,
            justify="right" if column.right else "left",
            no_wrap=column.most is None,
            overflow="fold",
        )
    for row, ceiling in enumerate(ceilings):
        styles = {_SOURCE: _source_style(ceiling), _METHOD: "dim"}
        table.add_row(*(Text(column.texts[row], styles.get(column.head, "")) for column in shown))
    return table


def _columns(ceilings: Sequence[Ceiling]) -> list[Column]:
    """The clock only where one was read."""
    columns = [
        Column("ceiling", [ceiling.name for ceiling in ceilings], gap=0),
        Column("best", [amount(ceiling, ceiling.best) for ceiling in ceilings], right=True),
        Column("median", list(map(_median, ceilings)), right=True, dispensable=2),
        Column("spread", list(map(_spread, ceilings)), right=True, dispensable=1),
        Column(_SOURCE, list(map(_source, ceilings))),
        Column("SM MHz", list(map(_clock, ceilings)), right=True, dispensable=3),
        Column(_METHOD, list(map(_method, ceilings)), dispensable=4, most=_METHOD_WIDTH),
    ]
    return [column for column in columns if column.head != "SM MHz" or any(column.texts)]


def _median(ceiling: Ceiling) -> str:
    return amount(ceiling, ceiling.median) if ceiling.source == MEASURED else ""


def _spread(ceiling: Ceiling) -> str:
    return f"{ceiling.spread:.1%}" if ceiling.samples > 1 else ""


def _source(ceiling: Ceiling) -> str:
    if ceiling.steady:
        return ceiling.source
    low, high = sorted((ceiling.best, ceiling.median))
    return f"unsteady {times(high / low)}"


def _clock(ceiling: Ceiling) -> str:
    return f"{ceiling.sm_mhz:,.0f}" if ceiling.sm_mhz else ""


def _method(ceiling: Ceiling) -> str:
    return sentence(ceiling.method) if ceiling.method else ""


def _source_style(ceiling: Ceiling) -> str:
    if ceiling.source != MEASURED:
        return "dim"
    return "" if ceiling.steady else "yellow"
