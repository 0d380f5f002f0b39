"""Where the time of a step goes: a bar of letters a variant, its step goodput, and what makes it unreliable."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.analysis.roofline import Point
from gpulab.protocol.statuses import Cache
from gpulab.report.goodput.goodput_report import GoodputReport, StepSource
from gpulab.report.report import RunReport
from gpulab.views import bars
from gpulab.views.findings import lines
from gpulab.views.step_parts import parts_table
from gpulab.views.text import Glyphs, byte_count, percent_of_roof, rate

UNRELIABLE = "?"
_BESIDE_BAR = 3
"""Columns beside a bar from which on it is half as long."""
_LEAST = 0.005
_SHARES_OF_ROOF = ("product", "efficiency")
_COLUMNS = (
    ("product", "of roof"),
    ("efficiency", "u alone"),
    ("hidden", "hidden"),
    ("items_per_s", "items/s"),
    ("peak_bytes", "peak"),
)


def goodput(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """The parts of each step that was profiled, and what must be known of them; None where none was."""
    profiled = {
        variant.name: variant.goodput
        for variant in report.variants
        if variant.goodput and variant.goodput.goodput is not None
    }
    if not profiled:
        return None
    points = {variant.name: variant.roofline for variant in report.variants}
    texts = {
        name: [_cell(column, summary, points[name]) for column, _ in _COLUMNS] for name, summary in profiled.items()
    }
    shown = [place for place in range(len(_COLUMNS)) if any(row[place] for row in texts.values())]
    cells = bars.CELLS if len(shown) <= _BESIDE_BAR else bars.CELLS // 2
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("step goodput", overflow="fold", min_width=8)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("where the time goes", no_wrap=True, min_width=cells)
    for place in shown:
        table.add_column(_COLUMNS[place][1], justify="right", no_wrap=True)
    letters = set()
    for name, summary in profiled.items():
        drawn = bars.bar(bars.categories(summary.partition.items()), cells)
        letters |= set(drawn.plain)
        if summary.reliable is False:
            drawn.stylize("dim")
        table.add_row(glyphs(name), share(summary), drawn, *(glyphs(texts[name][place]) for place in shown))
    parts = parts_table(profiled, letters, glyphs)
    return Group(table, "", *([parts] if parts else []), *_notes(report, profiled, glyphs))


def share(summary: GoodputReport) -> str:
    """Step goodput, with a question mark where it is not certain within 5 points; nothing where there is none."""
    if summary.goodput is None:
        return ""
    return f"{summary.goodput:.0%}{UNRELIABLE if summary.reliable is False else ''}"


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
    drawn = bars.phases([summary.phases for summary in phased.values()])
    for (name, summary), parts in zip(phased.items(), drawn, strict=True):
        waiting = {name or bars.OUTSIDE for name in summary.waiting}
        shares = Text()
        for part in parts:
            if part.share >= _LEAST:
                shares.append(", " if shares else "").append_text(part.mark)
                waits = " (waits)" if part.words in waiting else ""
                shares.append(glyphs(f" {part.words} {part.share:.0%}{waits}"))
        table.add_row(glyphs(name), bars.bar(parts), shares)
    return Group(Text(f"phase share{', an upper bound' if report.on_gpu else ''}", "bold"), table)


def _notes(report: RunReport, profiled: dict[str, GoodputReport], glyphs: Glyphs) -> list[Text]:
    notes = []
    if any(summary.hidden is not None for summary in profiled.values()):
        notes.append(Text("hidden: the share of copies behind other work", "dim"))
    unmarked = [name for name, summary in profiled.items() if not summary.marked]
    if unmarked:
        where = "nothing" if len(unmarked) == len(profiled) else f"in {', '.join(unmarked)} nothing"
        text = f"{where} is marked useful (lab.useful()), so everything that torch computes counts"
        notes.append(Text(glyphs(text), "dim"))
    own_step = [name for name, summary in profiled.items() if summary.step_source == StepSource.PROFILER]
    if own_step:
        state = (
            "with warm caches"
            if report.method.cache == Cache.COLD
            else "in which kernels and copies took longer than in the rounds"
        )
        text = f"of the step in the profiler's process, {state}: {', '.join(own_step)}"
        notes.append(Text(glyphs(text), "dim"))
    reasons = [reason for summary in profiled.values() for reason in summary.reasons]
    notes += [Text(glyphs(line), "yellow") for line in lines(reasons)]
    for name, summary in profiled.items():
        if summary.trace:
            notes.append(Text(glyphs(f"{name}: trace in {summary.trace}")))
    return notes


def _cell(column: str, summary: GoodputReport, point: Point | None) -> str:
    value = getattr(summary, column)
    if value is None:
        return ""
    if column == "product" and point:
        value = point.fraction  # the same, but always of the step that the roofline is about
    elif column in _SHARES_OF_ROOF and summary.step_source == StepSource.PROFILER:
        return ""
    if column in _SHARES_OF_ROOF:
        return f"{percent_of_roof(value)}%"
    if column == "items_per_s":
        return rate(value)
    return byte_count(value) if column == "peak_bytes" else f"{value:.0%}"
