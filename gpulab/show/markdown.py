"""Blocks as Markdown, and a run or a comparison in them, such as for a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulab.core.text import fenced, markdown_text, plain
from gpulab.draw.blocks import (
    Block,
    Code,
    Group,
    Heading,
    Leaf,
    Markdown,
    Table,
    Text,
    joined_leaves,
)
from gpulab.show.facts import answer, subtitle, title
from gpulab.show.parts import Shown, Target, parts_of
from gpulab.show.request import request_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpulab.features.compare.report import ComparisonReport
    from gpulab.report.report import RunReport


def document(report: RunReport) -> str:
    """The whole file of a run."""
    found = answer(report)
    request, problem = request_of(report)
    shown = Shown(report, Target.MARKDOWN, request=request, problem=problem)
    lines = [f"# {markdown_text(title(report))}", "", markdown_text(subtitle(report)), ""]
    lines += [f"**{markdown_text(found.short)}** {markdown_text(found.words)}".rstrip(), ""]
    for name, blocks in parts_of(shown):
        lines += [f"## {name[:1].upper()}{name[1:]}", "", *of(Group(*blocks))]
    return "\n".join(lines).rstrip() + "\n"


def summary(report: RunReport) -> list[str]:
    """The lines of the comparison, what weakens it, and the raw times."""
    lines = [f"**{markdown_text(title(report))}**", "", markdown_text(subtitle(report)), ""]
    for name, blocks in parts_of(Shown(report, Target.MARKDOWN)):
        if name in ("result", "trust", "raw times"):
            lines += of(Group(*blocks))
    return lines


def comparison(report: ComparisonReport) -> str:
    """The whole file of a comparison of saved runs."""
    from gpulab.features.compare.view import comparison_view

    heading = f"### gpulab: {markdown_text(report.before)} → {markdown_text(report.after)}"
    return "\n".join([heading, "", *of(comparison_view(report, with_bars=False))]).rstrip() + "\n"


def of(block: Block) -> Iterator[str]:
    """The lines of a block, with an empty one after each paragraph."""
    before: Leaf | None = None
    for leaf in joined_leaves(block, 200):
        is_line = isinstance(leaf, Text) and not leaf.no_wrap and bool(leaf)
        if isinstance(before, Text) and not is_line:
            yield ""
        if isinstance(leaf, Text) and is_line:
            # the blanks keep the next line from going on with it
            yield from (f"{markdown_text(line)}  " for line in leaf.plain.strip().splitlines())
            before = leaf
            continue
        before = None
        yield from _leaf_lines(leaf)
    if before is not None:
        yield ""


def _leaf_lines(leaf: Leaf) -> Iterator[str]:
    match leaf:
        case Heading():
            aside = f" {leaf.aside}" if leaf.aside else ""
            yield from (f"### {markdown_text(leaf.words + aside)}", "")
        case Code():
            lines = [f"{sign} {plain(line.plain)}".rstrip() for _, sign, line in leaf.lines]
            yield from (*fenced(lines, "diff"), "")
        case Markdown():
            yield from (leaf.source, "")
        case Table():
            yield from (*_table(leaf), "")
        case Text() if leaf.plain.strip():
            yield from (*fenced(leaf.plain.splitlines(), "text"), "")


def _table(table: Table) -> Iterator[str]:
    heads = [_cell(column.header) or " " for column in table.columns]
    rules = ["--:" if column.justify == "right" else ":--" for column in table.columns]
    for row in (heads, rules, *([_cell(cell) for cell in row] for row in table.cells)):
        yield f"| {' | '.join(row)} |"


def _cell(content: RenderableType) -> str:
    return markdown_text(str(content))
