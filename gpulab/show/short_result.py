"""The result of a run in thirty lines: what came out, where the time goes, what limits it and how
to make it faster, whether to believe it, and where the rest is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import log

from gpulab.draw.blocks import Block, Fitted, Group, Heading, Table, Text
from gpulab.report.report import RunReport
from gpulab.show.parts import Shown, Target, parts_of
from gpulab.show.terminal import height
from gpulab.show.view import header

MOST_LINES = 30
_LIMITS = ((14, 8), (14, 6), (12, 5), (10, 5), (8, 4), (6, 4), (4, 3), (4, 2), (4, 1))
"""Of variants, and of lines of a part: the first that fit are taken; before fewer, without the
table of limits.
"""
_MOST_ROWS = 3
"""Rows of a line of a part."""
_REST = Text("all tables, notes, times: --verbose, --raw (or gpulab, then h)", "dim")


def short_result(
    report: RunReport,
    asked_for: Sequence[Block] = (),
    *,
    with_operations: bool = True,
    folds: bool = True,
    together: RunReport | None = None,
    predicted: Sequence[Block] = (),
) -> Fitted:
    """At most `MOST_LINES` lines with those of the command; what it asked for comes besides,
    however long it is. `with_operations`: those of functions. `folds`: whether a line that is too
    long goes on in the next; else none is cut. `together`: the run of all fixes that gained;
    `predicted`: the answer to a prediction, which comes besides too.
    """
    operations: Sequence[Block] | None = None if with_operations else ()
    shown = Shown(
        report,
        Target.SHORT,
        together=together,
        predicted=predicted,
        operations=operations,
        verbose=False,
    )

    def of_width(width: int) -> Iterator[Block]:
        # more columns than any line takes
        room = width if folds else 10_000
        sized = replace(shown, width=width)
        answer = height(Group(*predicted), room) if predicted else 0
        for place, limits in enumerate((_LIMITS[0], *_LIMITS)):
            parts = _parts(sized, *limits, room, dense=place > 0)
            blocks = [header(report), "", *parts, _REST]
            # the command adds the path of the run file, and an empty line
            if height(Group(*blocks), room) - answer <= MOST_LINES - 2:
                break
        *before, last = blocks
        yield from before
        for block in asked_for:
            yield from (block, "")
        yield last

    return Fitted(of_width)


def _parts(shown: Shown, variants: int, lines: int, width: int, *, dense: bool) -> Iterator[Block]:
    """The parts below each other; `dense`: without empty lines in them, and tables of limits."""
    chosen = _chosen(shown.report, variants)
    for number, (title, blocks) in enumerate(parts_of(replace(shown, variants=chosen))):
        if number:
            yield Heading(title)
        texts = 0
        most = {"trust": 1}.get(title, _MOST_ROWS) * width
        for block in blocks:
            if dense and (block == "" or (number > 0 and isinstance(block, Table))):
                continue
            is_line = isinstance(block, Text) and number > 0
            texts += is_line
            if texts <= lines:
                yield _cut(block, most) if is_line else block
        yield ""


def _cut(block: Block, most: int) -> Block:
    """A line that would take more cells ends in an ellipsis, in its first row."""
    if isinstance(block, Text) and block.cell_len > most:
        block.no_wrap = True
        block.overflow = "ellipsis"
    return block


def _chosen(report: RunReport, count: int) -> Sequence[str] | None:
    """The baseline, the best, and those that differ most; None where all have room."""
    if count >= len(report.variants):
        return None
    first, *others = (variant.name for variant in report.variants)
    others.sort(key=lambda name: _weight(report, name), reverse=True)
    return [first, *others[: count - 1]]


def _weight(report: RunReport, name: str) -> tuple[bool, float]:
    if report.functions:
        time = report.variant(name).time_s
        return False, time.value if time else 0.0
    comparison = report.comparison(name)
    speedup = comparison.speedup if comparison else None
    return name == report.best, abs(log(speedup.value)) if speedup else 0.0
