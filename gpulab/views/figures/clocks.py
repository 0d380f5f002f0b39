"""The same steps by several clocks: which of them tells what a step takes, and by how much the others are off."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.protocol.statuses import Clock, Shows
from gpulab.report.report import RunReport
from gpulab.views.text import Glyphs, seconds, times

_HEADS = {
    Clock.WALL: "block, one wait",
    Clock.RETURN: "no wait",
    Clock.STEP: "wait each step",
    Clock.DEVICE: "device events",
}


def clocks(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """A row a variant, each clock beside the block of steps with one wait; None where clocks are not the lesson."""
    if report.shows != Shows.CLOCKS:
        return None
    known = [clock for clock in _HEADS if any(clock in variant.clocks for variant in report.variants)]
    if len(known) < 2:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("time of a step by", overflow="fold", min_width=7)
    for clock in known:
        table.add_column(_HEADS[clock], justify="right", no_wrap=True)
    for variant in report.variants:
        true_s = variant.clocks.get(Clock.WALL)
        cells = []
        for clock in known:
            value = variant.clocks.get(clock)
            beside = f" {times(value / true_s)}" if value and true_s and clock != Clock.WALL else ""
            cells.append(glyphs(f"{seconds(value)}{beside}") if value else "")
        table.add_row(glyphs(variant.name), *cells)
    legend = (
        "a block of steps with one wait at its end is what they take one after the other; "
        "without a wait the host's clock shows how long the calls take to return"
    )
    return Group(table, Text(glyphs(legend), "dim"))
