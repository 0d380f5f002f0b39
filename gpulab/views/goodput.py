"""Where the time of a step goes: a bar of letters a variant, its goodput, and the operations it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gpulab.model.goodput import COPY, DATA, SYNC, UNMARKED, USEFUL
from gpulab.model.operations import Operation
from gpulab.model.result import RunResult, VariantResult
from gpulab.views.text import Glyphs, byte_count, rate, seconds

_BAR, _BESIDE_BAR = 30, 3
"""Cells of a bar, half of them where more columns than that stand beside it."""
_OWN = "own"
"""A mark of the author's own, whatever it is called: the text beside its bar names it."""
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
    _OWN: ("x", "cyan"),
}
"""Of every part of a step its letter: colours alone say nothing."""
_PHASES = {USEFUL: USEFUL, DATA: "data wait", COPY: "copies", SYNC: "sync", UNMARKED: "other"}
_WORDS = {"preempted": "off the CPU (preempted, or a wait that no phase names)"}
_LEAST = 0.005
_WAITS = 0.5
"""A phase that runs for less of its time than this waits, or was preempted."""
_COLUMNS = (
    ("efficiency", "of roof"),
    ("product", "product"),
    ("hidden", "hidden"),
    ("items_per_s", "items/s"),
    ("peak_bytes", "peak"),
)
_FIGURES = (("calls", "self", "share"), ("self", "share"), ("self",))
_ROWS, _BESIDE, _NAME, _GAP = 8, 5, 40, 2
_WIDE, _SHAPES = 120, 20
_WHOLE = 0.0995
"""From here on a percentage needs no digit after the point."""


def goodput(run: RunResult, glyphs: Glyphs) -> RenderableType | None:
    """The partition of each variant that was profiled, what it means, and what must be known of it; None of none."""
    found = [one for one in run.variants if one.goodput and one.goodput.goodput is not None]
    if not found:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("goodput", overflow="fold", min_width=8)
    table.add_column("", justify="right", no_wrap=True)
    shown = [(name, head) for name, head in _COLUMNS if any(getattr(one.goodput, name) is not None for one in found)]
    length = _BAR if len(shown) <= _BESIDE_BAR else _BAR // 2
    table.add_column("where the time goes", no_wrap=True, min_width=length)
    for _, head in shown:
        table.add_column(head, justify="right", no_wrap=True)
    for one in found:
        of = one.goodput
        assert of is not None
        cells = [_cell(name, getattr(of, name)) for name, _ in shown]
        table.add_row(glyphs(one.name), f"{of.goodput:.0%}", bar(of.partition.items(), length), *map(glyphs, cells))
    parts: list[RenderableType] = [table, Text(_legend(found), "dim")]
    unmarked = [one.name for one in found if one.goodput and not one.goodput.marked]
    if unmarked:
        whose = "nothing" if len(unmarked) == len(found) else f"in {', '.join(unmarked)} nothing"
        told = f"{whose} is marked useful (lab.useful()), so everything that torch computes counts"
        parts.append(Text(glyphs(told), "dim"))
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
        text.append(bar((_PHASES.get(name, _OWN), share) for name, share in shares.items()))
        told = [
            f"{name or 'unmarked'} {share:.0%}{_waits(one.goodput.ran.get(name))}"
            for name, share in shares.items()
            if share >= _LEAST
        ]
        text.append(glyphs(f"  {', '.join(told)}\n"), "not bold")
    text.rstrip()
    return text


def _waits(ran: float | None) -> str:
    """What a phase does that hardly runs."""
    return " (waits)" if ran is not None and ran < _WAITS else ""


def bar(parts: Iterable[tuple[str, float]], length: int = _BAR) -> Text:
    """Cells in proportion, each the letter of its part; what has a share has at least its rounding."""
    text, end, placed = Text(), 0.0, 0
    for name, share in sorted(parts, key=_order):
        end += share
        letter, style = _LETTERS.get(name, _LETTERS[_OWN])
        cells = round(end * length) - placed
        placed += cells
        text.append(letter * cells, f"not bold {style}")
    return text


def operations(run: RunResult, glyphs: Glyphs) -> RenderableType | None:
    """The operations that a step, or an item, spends most in; of many variants the baseline and the last."""
    found = [one for one in run.variants if one.goodput and one.goodput.operations]
    shown = found if len(found) <= _BESIDE else [found[0], *found[1 - _BESIDE :]]
    return _Operations(shown, [one.name for one in found if one not in shown], run.per, glyphs) if found else None


@dataclass(frozen=True)
class _Operations:
    """A column a variant, with as many figures as there is room for; those first that are longest anywhere."""

    shown: Sequence[VariantResult]
    left_out: Sequence[str]
    per: str
    glyphs: Glyphs

    @property
    def _head(self) -> str:
        return f"operations of {'an item' if self.per == 'item' else 'a step'}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        alone, width = len(self.shown) == 1, options.max_width
        of = [_by_name(one, per_item=self.per == "item", apart=alone) for one in self.shown]
        longest: dict[tuple[str, str], Operation] = {}
        for key, row in sorted((each for rows in of for each in rows.items()), key=lambda each: -each[1].self_s):
            longest.setdefault(key, row)
        order = list(longest)[:_ROWS]
        for figures in _FIGURES if len(of) <= 2 else _FIGURES[1:]:
            columns = [_in_line(figures, [rows.get(key) for key in order]) for rows in of]
            if width - sum(len(lines[0]) + _GAP for lines in columns) >= len(self._head):
                break
        shapes = [longest[key].shapes for key in order] if alone or width >= _WIDE else []
        yield self._table([name for name, _ in order], columns, shapes, width)
        if self.left_out:
            yield Text(self.glyphs(f"not shown: {', '.join(self.left_out)}"), "dim")

    def _table(self, names: list[str], columns: list[list[str]], shapes: list[str], width: int) -> Table:
        """Where room is short, variants are folded, names and shapes cut, figures never."""
        glyphs, head = self.glyphs, self._head
        variants = [one.name for one in self.shown] if len(columns) > 1 else [""]
        widths = [len(lines[0]) for lines in columns]
        unfolded = [max(cells, cell_len(one)) for cells, one in zip(widths, variants, strict=True)]
        beside = min(_SHAPES, max(map(cell_len, shapes), default=0))
        if sum(unfolded) + len(head) + beside + _GAP * (len(unfolded) + 1) <= width:
            widths = unfolded
        room = max(1, width - sum(widths) - _GAP * len(widths))
        name = min(_NAME, max(map(cell_len, (head, *names))), room, max(len(head), room - beside - _GAP))
        left = room - name - _GAP

        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        table.add_column(head, width=name, no_wrap=True, overflow=glyphs.overflow, vertical="bottom")
        for one, lines, cells in zip(variants, columns, widths, strict=True):
            figures = glyphs(f"{one}\n{lines[0]}".lstrip("\n"))
            table.add_column(figures, justify="right", width=cells, overflow="fold", vertical="bottom")
        told = [names, *(lines[1:] for lines in columns)]
        if 0 < beside <= left:
            cut = glyphs.overflow
            table.add_column("shapes", max_width=left, no_wrap=True, overflow=cut, vertical="bottom", style="dim")
            told.append(shapes)
        for row in zip(*told, strict=True):
            table.add_row(*(Text(glyphs(one)) for one in row))
        return table


def _by_name(one: VariantResult, *, per_item: bool, apart: bool) -> dict[tuple[str, str], Operation]:
    """The rows of a variant, the longest first, under name and shapes; or summed under their name and ''."""
    found: dict[tuple[str, str], Operation] = {}
    items = one.items if per_item and one.items else 1.0
    for row in one.goodput.operations if one.goodput else []:
        key = short(row.name), row.shapes if apart else ""
        row = replace(row, calls=row.calls / items, self_s=row.self_s / items)
        if before := found.get(key):
            sums = {name: getattr(before, name) + getattr(row, name) for name in ("calls", "self_s", "share")}
            row = replace(before, **sums)
        found[key] = row
    return found


def _in_line(figures: Sequence[str], rows: Sequence[Operation | None]) -> list[str]:
    """The names of the figures, and the figures of each row below them."""
    columns = [[name, *(_figure(name, row) if row else "" for row in rows)] for name in figures]
    widths = [max(map(len, column)) for column in columns]
    return [
        " ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in zip(*columns, strict=True)
    ]


def _figure(name: str, of: Operation) -> str:
    if name == "calls":
        return f"{of.calls:,.4g}"
    if name == "self":
        return seconds(of.self_s)
    return f"{of.share:.0%}" if of.share >= _WHOLE else f"{of.share:.1%}"


def short(name: str) -> str:
    """A kernel's name without its templates, arguments and namespaces, which fill a page."""
    if name.startswith(("Memcpy", "Memset")):
        return name.partition(" (")[0]
    if "<" not in name and "(" not in name:
        return name
    plain, depth = "", 0
    for letter in name.replace("(anonymous namespace)::", ""):
        depth += (letter in "<(") - (letter in ">)")
        plain += letter if not depth and letter not in ">)" else ""
    functor = re.search(r"(\w+(?:Functor|Ops)\w*|\w+_kernel_cuda|\w+_kernel_impl)", name)
    named = plain.removeprefix("void ").rpartition("::")[2].strip() or name
    return f"{named} {functor.group(1)}" if functor and functor.group(1) not in named else named


def _legend(found: Sequence[VariantResult]) -> str:
    seen = {name for one in found if one.goodput for name, share in one.goodput.partition.items() if share >= _LEAST}
    told = [f"{letter} {_WORDS.get(name, name)}" for name, (letter, _) in _LETTERS.items() if name in seen]
    if any(one.goodput and one.goodput.hidden is not None for one in found):
        told.append("hidden: the share of copies behind other work")
    return ", ".join(told)


def _order(item: tuple[str, float]) -> int:
    names = list(_LETTERS)
    return names.index(item[0]) if item[0] in names else len(names)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "items_per_s":
        return rate(value)
    return byte_count(value) if name == "peak_bytes" else f"{value:.0%}"
