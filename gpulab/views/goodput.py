"""Where the time of a step goes: a bar of letters a variant, its goodput, and the operations it is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.goodput import USEFUL
from gpulab.model.operations import Operation
from gpulab.model.result import RunResult, VariantResult
from gpulab.views.text import Glyphs, byte_count, rate, seconds

_BAR = 30
_LETTERS = {
    USEFUL: ("u", "green"),
    "other busy": ("b", "cyan"),
    "communication": ("n", "blue"),
    "copies": ("c", "magenta"),
    "alloc": ("a", "red"),
    "data wait": ("d", "yellow"),
    "sync": ("s", "red"),
    "launch-bound": ("l", "yellow"),
    "other": (".", "dim"),
    "preempted": ("p", "red"),
}
"""Of every part of a step its letter: colours alone say nothing."""
_PHASES = {"data": "data wait", "copy": "copies", "sync": "sync", "": "other"}
_LEAST = 0.005
_ROWS = 8


def goodput(run: RunResult, glyphs: Glyphs) -> RenderableType | None:
    """The partition of each variant that was profiled, what it means, and what must be known of it; None of none."""
    found = [one for one in run.variants if one.goodput and one.goodput.goodput is not None]
    if not found:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("goodput", overflow="fold", min_width=8)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("where the time goes", no_wrap=True, min_width=_BAR)
    last = [("efficiency", "of roof"), ("product", "product"), ("items_per_s", "items/s"), ("peak_bytes", "peak")]
    shown = [(name, head) for name, head in last if any(getattr(one.goodput, name) is not None for one in found)]
    for _, head in shown:
        table.add_column(head, justify="right", no_wrap=True)
    for one in found:
        of = one.goodput
        assert of is not None
        cells = [_cell(name, getattr(of, name)) for name, _ in shown]
        table.add_row(glyphs(one.name), f"{of.goodput:.0%}", bar(of.partition), *map(glyphs, cells))
    parts: list[RenderableType] = [table, Text(_legend(found), "dim")]
    if not any(one.goodput.marked for one in found if one.goodput):
        parts.append(Text("nothing is marked useful (lab.useful()), so everything that computes counts", "dim"))
    for one in found:
        if one.goodput and one.goodput.why:
            parts.append(Text(glyphs(f"{one.name}: {one.goodput.why}"), "yellow"))
        if one.goodput and one.goodput.trace:
            parts.append(Text(glyphs(f"{one.name}: trace in {one.goodput.trace}")))
    return Group(*parts)


def phases(run: RunResult, glyphs: Glyphs) -> RenderableType | None:
    """The shares of the marks so far: live, and of the host's clock or the device's events, not of its kernels."""
    found = [one for one in run.variants if one.goodput and one.goodput.phases]
    if not found:
        return None
    bound = ", an upper bound" if run.device and run.device.kind == "cuda" else ""
    text = Text(glyphs(f"phase share{bound}\n"), "bold", no_wrap=True)
    width = max(len(one.name) for one in found)
    for one in found:
        assert one.goodput is not None
        shares = one.goodput.phases
        text.append(glyphs(f"{one.name:<{width}}  "), "not bold")
        text.append(bar({_PHASES.get(name, name): share for name, share in shares.items()}))
        told = ", ".join(f"{name or 'unmarked'} {share:.0%}" for name, share in shares.items() if share >= _LEAST)
        text.append(glyphs(f"  {told}\n"), "not bold")
    text.rstrip()
    return text


def bar(shares: Mapping[str, float]) -> Text:
    """Cells in proportion, each the letter of its part; what has a share has at least its rounding."""
    text, end, placed = Text(), 0.0, 0
    for name, share in sorted(shares.items(), key=_order):
        end += share
        letter, style = _LETTERS.get(name, (name[:1].lower() or ".", "cyan"))
        cells = round(end * _BAR) - placed
        placed += cells
        text.append(letter * cells, f"not bold {style}")
    return text


def operations(run: RunResult, glyphs: Glyphs) -> RenderableType | None:
    """The largest operations of the baseline, and beside them what another variant makes of them."""
    found = [one for one in run.variants if one.goodput and one.goodput.operations]
    if not found:
        return None
    return Group(*(part for one in found for part in (_operations(one, glyphs), "")))


def _operations(one: VariantResult, glyphs: Glyphs) -> Table:
    assert one.goodput is not None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column(glyphs(f"{one.name}: operations"), overflow="fold", min_width=16)
    for head in ("calls", "self", "share"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("shapes", overflow="ellipsis", no_wrap=True, style="dim")
    for row in _shown(one.goodput.operations):
        shapes = glyphs(row.shapes)
        table.add_row(glyphs(row.name), f"{row.calls:,}", glyphs(seconds(row.self_s)), f"{row.share:.1%}", shapes)
    return table


def _shown(rows: Sequence[Operation]) -> Sequence[Operation]:
    return [row for row in rows if row.share >= _LEAST][:_ROWS] or rows[:1]


def _legend(found: Sequence[VariantResult]) -> str:
    seen = {name for one in found if one.goodput for name, share in one.goodput.partition.items() if share >= _LEAST}
    return ", ".join(f"{letter} {name}" for name, (letter, _) in _LETTERS.items() if name in seen)


def _order(item: tuple[str, float]) -> int:
    names = list(_LETTERS)
    return names.index(item[0]) if item[0] in names else len(names)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "items_per_s":
        return rate(value)
    return byte_count(value) if name == "peak_bytes" else f"{value:.0%}"
