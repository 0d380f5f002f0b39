"""The ceilings of a device as a table: what was measured, how steadily, and what its datasheet says."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gpulab.model.ceilings import MEASURED, Ceiling
from gpulab.model.result import RunResult
from gpulab.views.text import Glyphs, rate, seconds, times

_WIDE = 100


def ceilings(run: RunResult, glyphs: Glyphs) -> RenderableType:
    """Header, a row a ceiling, and what must be known of them."""
    device = run.device
    parts: list[RenderableType] = []
    if device:
        threads = f", {device.threads} thread{'s' * (device.threads > 1)}" if device.kind == "cpu" else ""
        parts += [Text(glyphs(f"{device.name}{threads}"), "bold"), ""]
    if run.ceilings and run.ceilings.ceilings:
        parts += [Rows(run.ceilings.ceilings, glyphs), ""]
        parts += [Text(glyphs(f"measured at {run.ceilings.at} (UTC)"), "dim")] if run.ceilings.at else []
    if run.reason:
        parts.append(Text(glyphs(f"{run.outcome}: {run.reason}"), "bold red"))
    parts += [Text(glyphs(f"note: {warning}"), "yellow") for warning in run.warnings]
    return Group(*parts)


def amount(one: Ceiling, value: float) -> str:
    """A value of a ceiling in its unit."""
    return seconds(value) if one.unit == "s" else f"{rate(value)}{one.unit}"


@dataclass(frozen=True)
class Rows:
    """A row a ceiling; how each was measured where there is room for it."""

    found: list[Ceiling]
    glyphs: Glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield _table(self.found, self.glyphs, how=options.max_width >= _WIDE)


def _table(found: list[Ceiling], glyphs: Glyphs, *, how: bool) -> Table:
    clocks = any(one.sm_mhz for one in found)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("ceiling", overflow="fold", min_width=20)
    for name in ("best", "median", "spread", "known", *(("SM MHz",) if clocks else ())):
        table.add_column(name, justify="left" if name == "known" else "right", no_wrap=True)
    if how:
        table.add_column("by", overflow="fold", style="dim")
    for one in found:
        measured = one.source == MEASURED
        spread = f"{one.spread:.1%}" if one.samples > 1 else ""
        known = (
            one.source
            if one.steady
            else f"too unsteady ({times(max(one.best, one.median) / min(one.best, one.median))})"
        )
        cells: list[RenderableType] = [
            Text(glyphs(one.name)),
            glyphs(amount(one, one.best)),
            glyphs(amount(one, one.median)) if measured else "",
            spread,
            Text(known, "" if measured and one.steady else "yellow" if measured else "dim"),
        ]
        cells += [f"{one.sm_mhz:,.0f}" if one.sm_mhz else ""] if clocks else []
        table.add_row(*cells, *([glyphs(one.how)] if how else []))
    return table
