"""Where the time of a step goes: a bar of letters a variant, its goodput, and the operations it is made of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.goodput import USEFUL
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
_WORDS = {"preempted": "off the CPU (preempted, or a wait that no phase names)"}
_LEAST = 0.005
_ROWS, _BESIDE, _NAME = 8, 5, 40


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
    unmarked = [one.name for one in found if one.goodput and not one.goodput.marked]
    if unmarked:
        whose = "nothing" if len(unmarked) == len(found) else f"in {', '.join(unmarked)} nothing"
        told = f"{whose} is marked useful (lab.useful()), so everything that computes counts"
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
        letter, style = _LETTERS.get(name, ("x", "cyan"))  # a mark of the author's own: the text beside it names it
        cells = round(end * _BAR) - placed
        placed += cells
        text.append(letter * cells, f"not bold {style}")
    return text


def operations(run: RunResult, glyphs: Glyphs) -> RenderableType | None:
    """The operations that a step spends most in: of one variant with their shapes, of several side by side."""
    found = [one for one in run.variants if one.goodput and one.goodput.operations]
    if not found:
        return None
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("operations of a step", overflow="ellipsis", no_wrap=True, max_width=_NAME)
    if len(found) == 1:
        _of_one(table, found[0], glyphs)
    else:
        _side_by_side(table, found[:_BESIDE], glyphs)
    return table


def _of_one(table: Table, one: VariantResult, glyphs: Glyphs) -> None:
    for head in ("calls", "self", "share"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("shapes", overflow="ellipsis", no_wrap=True, style="dim")
    for row in (one.goodput.operations if one.goodput else [])[:_ROWS]:
        shapes = glyphs(row.shapes)
        table.add_row(
            glyphs(short(row.name)), f"{row.calls:,.4g}", glyphs(seconds(row.self_s)), f"{row.share:.1%}", shapes
        )


def _side_by_side(table: Table, found: Sequence[VariantResult], glyphs: Glyphs) -> None:
    """Self time of each in each, the shapes summed, those first that are longest anywhere."""
    sums: list[dict[str, float]] = []
    for one in found:
        table.add_column(glyphs(one.name), justify="right", overflow="fold", min_width=7)
        of: dict[str, float] = {}
        for row in one.goodput.operations if one.goodput else []:
            name = short(row.name)
            of[name] = of.get(name, 0.0) + row.self_s
        sums.append(of)
    names = {name for of in sums for name in of if not name.startswith("...")}
    order = sorted(names, key=lambda name: -max(of.get(name, 0.0) for of in sums))
    for name in order[:_ROWS]:
        table.add_row(glyphs(name), *(glyphs(seconds(of[name])) if name in of else "" for of in sums))


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
    return ", ".join(f"{letter} {_WORDS.get(name, name)}" for name, (letter, _) in _LETTERS.items() if name in seen)


def _order(item: tuple[str, float]) -> int:
    names = list(_LETTERS)
    return names.index(item[0]) if item[0] in names else len(names)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name == "items_per_s":
        return rate(value)
    return byte_count(value) if name == "peak_bytes" else f"{value:.0%}"
