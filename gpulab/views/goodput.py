"""Where the time of a step goes: a bar of letters a variant, its goodput, and what makes it unreliable."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.report.goodput_report import GoodputReport
from gpulab.report.report import RunReport
from gpulab.views import bars
from gpulab.views.findings import lines
from gpulab.views.text import Glyphs, byte_count, rate

_BESIDE_BAR = 3
"""Columns beside a bar from which on it is half as long."""
_LEAST = 0.005
_COLUMNS = (
    ("product", "of roof"),
    ("efficiency", "u alone"),
    ("hidden", "hidden"),
    ("items_per_s", "items/s"),
    ("peak_bytes", "peak"),
)


def goodput(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """The partition of each variant that was profiled, and what must be known of it; None where none was."""
    profiled = {
        variant.name: variant.goodput
        for variant in report.variants
        if variant.goodput and variant.goodput.goodput is not None
    }
    if not profiled:
        return None
    shown = [
        column for column in _COLUMNS if any(getattr(summary, column[0]) is not None for summary in profiled.values())
    ]
    cells = bars.CELLS if len(shown) <= _BESIDE_BAR else bars.CELLS // 2
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("goodput", overflow="fold", min_width=8)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("where the time goes", no_wrap=True, min_width=cells)
    for _, head in shown:
        table.add_column(head, justify="right", no_wrap=True)
    drawn = []
    for name, summary in profiled.items():
        parts = bars.categories(summary.partition.items())
        drawn.append((bars.bar(parts, cells), parts))
        values = [_cell(column, getattr(summary, column)) for column, _ in shown]
        table.add_row(glyphs(name), f"{summary.goodput:.0%}", drawn[-1][0], *map(glyphs, values))
    legend = bars.legend(drawn)
    if any(summary.hidden is not None for summary in profiled.values()):
        legend += ", hidden: the share of copies behind other work"
    return Group(table, Text(glyphs(legend), "dim"), *_notes(profiled, glyphs))


def phases(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """The shares of the phases so far: live, and of the host's clock or the device's events, not of its kernels."""
    phased = {
        variant.name: variant.goodput for variant in report.variants if variant.goodput and variant.goodput.phases
    }
    if not phased:
        return None
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True, min_width=bars.CELLS)
    table.add_column(overflow="fold")
    for name, summary in phased.items():
        parts, waiting = bars.phases(summary.phases.items()), {name or bars.OUTSIDE for name in summary.waiting}
        shares = (
            f"{part.letter}={part.words} {part.share:.0%}{' (waits)' if part.words in waiting else ''}"
            for part in parts
            if part.share >= _LEAST
        )
        table.add_row(glyphs(name), bars.bar(parts), glyphs(", ".join(shares)))
    return Group(Text(f"phase share{', an upper bound' if report.on_gpu else ''}", "bold"), table)


def _notes(profiled: dict[str, GoodputReport], glyphs: Glyphs) -> list[Text]:
    notes = []
    unmarked = [name for name, summary in profiled.items() if not summary.marked]
    if unmarked:
        where = "nothing" if len(unmarked) == len(profiled) else f"in {', '.join(unmarked)} nothing"
        text = f"{where} is marked useful (lab.useful()), so everything that torch computes counts"
        notes.append(Text(glyphs(text), "dim"))
    reasons = [reason for summary in profiled.values() for reason in summary.reasons]
    notes += [Text(glyphs(line), "yellow") for line in lines(reasons)]
    for name, summary in profiled.items():
        if summary.trace:
            notes.append(Text(glyphs(f"{name}: trace in {summary.trace}")))
    return notes


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return ""
    if column == "items_per_s":
        return rate(value)
    return byte_count(value) if column == "peak_bytes" else f"{value:.0%}"
