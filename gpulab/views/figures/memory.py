"""What each variant needs of the device's memory, and where that is the lesson, drawn against its time."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.protocol.statuses import Shows
from gpulab.report.report import RunReport
from gpulab.views.figures.chart import Mark, Scale, chart, letter_of, style_of
from gpulab.views.text import Glyphs, byte_count, seconds

_WIDTH, _HEIGHT = 72, 9


def memory(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """A row a variant; None where nothing is known of it."""
    known = [
        (place, variant) for place, variant in enumerate(report.variants) if variant.memory and variant.memory.peak
    ]
    if not known:
        return None
    drawn = report.shows == Shows.MEMORY
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("memory of one variant alone", overflow="fold", min_width=7)
    on_gpu = any(variant.memory and variant.memory.reserved is not None for _, variant in known)
    for head in ("peak", "held", *(["reserved"] if on_gpu else []), f"time/{report.per}"):
        table.add_column(head, justify="right", no_wrap=True)
    marks = []
    for place, variant in known:
        assert variant.memory is not None
        needs, time = variant.memory, variant.time_per(report.per)
        name = Text(f"{letter_of(place)} " if drawn else "", style_of(place))
        name.append(glyphs(variant.name), "not bold default")
        reserved = [byte_count(needs.reserved) if needs.reserved is not None else ""] if on_gpu else []
        shown = glyphs(seconds(time.median)) if time else ""
        table.add_row(name, byte_count(needs.peak), byte_count(needs.held), *reserved, shown)
        if time and needs.peak:
            marks.append(Mark(letter_of(place), time.median, float(needs.peak), style_of(place)))
    parts: list[RenderableType] = [table]
    if drawn and len(marks) > 1:
        x = Scale(f"time per {report.per}", lambda value: glyphs(seconds(value)))
        parts += ["", chart(marks, x, Scale("peak memory", byte_count), glyphs, width=_WIDTH, height=_HEIGHT)]
    return Group(*parts)
