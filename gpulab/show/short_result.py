"""The result of a run in thirty lines: what came out, whether to believe it, what limits it and how
to make it faster, and where the rest is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import log

from gpulab.catalog.view import best_comparison
from gpulab.core.statuses import BoundKind
from gpulab.core.units import plural
from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import part
from gpulab.features.goodput.operations import operations
from gpulab.features.goodput.view import goodput
from gpulab.features.roofline.view import limits
from gpulab.report.report import RunReport, VariantReport
from gpulab.show.parts import lesson_figure
from gpulab.show.terminal import height as height_of_block
from gpulab.show.view import (
    Line,
    below_table,
    bounds,
    claims,
    comparison_table,
    conclusions,
    figures,
    header,
    notes,
    outcome,
)

MOST_LINES = 30
_FEWEST_VARIANTS, _MOST_VARIANTS = 4, 14
"""Of the table where room is short, and where it is not."""
_MOST_FUNCTIONS, _MOST_NOTES, _MOST_ADVICE = 3, 3, 2
_FEWEST_OPERATIONS, _MOST_OPERATIONS = 3, 5
"""Where findings need the room, and where there are none."""
_OUTCOME, _TRUST, _LIMITS = range(3)
_BELOW_TABLE, _ADVICE, _NOTE, _CLAIM, _FIGURE, _NEXT, _LAST = 1, 2, 3, 4, 5, 6, 8
"""How dispensable they are."""


@dataclass(frozen=True, eq=False)
class _Part:
    """`dispensable`: the higher, the sooner it goes where there is no room; 0 stays."""

    section: int
    content: Block
    dispensable: int = 0

    @property
    def is_note(self) -> bool:
        return self.dispensable == _NOTE

    def cut(self) -> None:
        """To one row for each line."""
        if isinstance(self.content, Text):
            self.content.no_wrap = True
            self.content.overflow = "ellipsis"


@dataclass(frozen=True)
class ShortResult:
    """At most `MOST_LINES` lines, with the path of the run file and the empty line that follow it.

    What the command asked for comes besides, however long it is.
    """

    report: RunReport
    asked_for: Sequence[Block] = ()
    with_operations: bool = True
    """Those of functions; False where what was asked for has them."""
    wraps: bool = True
    """Whether long lines are folded."""

    def of_width(self, width: int) -> Iterator[Block]:
        """The parts that have room, at a width."""

        def height(content: Block) -> int:
            return height_of_block(content, width, wraps=self.wraps)

        height_of = cache(lambda part: height(part.content))  # laying one out takes a while
        variants = len(self.report.variants)
        least = height(_table(self.report, min(variants, _FEWEST_VARIANTS)))
        run_file = Text(f"run file: {self.report.run_file}")
        room = MOST_LINES - height(run_file) - 1 - height(_rest(1))

        def free(parts: Sequence[_Part]) -> int:
            sections = {part.section for part in parts}
            return room - len(sections) - sum(map(height_of, parts))

        parts = list(_parts(self.report, with_operations=self.with_operations))
        if free(parts) < least and self.wraps:
            for part in parts:
                if part.is_note or part is parts[0]:
                    part.cut()
            height_of.cache_clear()
        while free(parts) < least and any(part.dispensable for part in parts):
            parts.remove(max(reversed(parts), key=lambda part: part.dispensable))
        count = min(variants, _MOST_VARIANTS)
        while count > _FEWEST_VARIANTS and height(_table(self.report, count)) > free(parts):
            count -= 1
        for section in (_OUTCOME, _TRUST, _LIMITS):
            shown = [part.content for part in parts if part.section == section]
            if section == _OUTCOME:
                shown.append(_table(self.report, count))
            if shown:
                yield Group(*shown, "")
        for content in self.asked_for:
            yield Group(content, "")
        noted = len([part for part in parts if part.is_note])
        yield _rest(len(_notes(self.report)) - noted)


def _parts(report: RunReport, *, with_operations: bool) -> Iterator[_Part]:
    """All but the table, in the order in which they are read."""
    yield _Part(_OUTCOME, header(report))
    above = ["", *outcome(report)]
    if not _has_table(report):  # what ends it parts it from the table
        above.pop()
    yield from (_Part(_OUTCOME, content) for content in above)
    figure = lesson_figure(report)
    if figure is not None:
        yield _Part(_TRUST, figure, _LAST if report.compares else 0)
    for number, line in enumerate(below_table(report)):
        yield _Part(_TRUST, _text(line), min(number, _BELOW_TABLE))
    for line in claims(report):
        yield _Part(_TRUST, _text(line), _CLAIM)
    for line in figures(report):
        yield _Part(_TRUST, _text(line), _BELOW_TABLE if "bold" in line else _FIGURE)
    for line in _notes(report)[:_MOST_NOTES]:
        yield _Part(_TRUST, _text(line), _NOTE)
    if report.functions:
        yield from _steps(report, with_operations=with_operations)
    else:
        yield from _limits(report)


def _notes(report: RunReport) -> list[Line]:
    """What is excluded where there is no verdict, what explains the result, what weakens it, then
    remarks.
    """
    remarks, weakening = notes(report)
    return [
        *bounds(report),
        *((line, "") for line in conclusions(report)),
        *((f"note: {line}", "yellow") for line in weakening),
        *((line, "") for line in remarks),
    ]


def _text(line: Line) -> Text:
    return Text(*line)


def _limits(report: RunReport) -> Iterator[_Part]:
    """What limits the baseline and the best variant, and what to do."""
    best = best_comparison(report)
    named = {report.baseline, best.variant if best else None}
    variants = [variant for variant in report.variants if variant.name in named]
    heading = Text("limits, and what to do", "bold")
    yield from _limited(variants, heading, 0 if report.compares else _LAST)


def _limited(
    variants: Sequence[VariantReport],
    heading: Text | None,
    dispensable: int,
    *,
    says_why: bool = False,
) -> Iterator[_Part]:
    """What limits each, and what to do about it, where there is room; `says_why` there is nothing
    to do.
    """
    for variant in variants:
        limited: Text | None = limits([variant]) or None
        cause = variant.cause
        if variant.get("advice") and cause and cause.bound == BoundKind.UNKNOWN:
            limited = None  # the findings say more
        unnamed = limited is None
        found = part("findings.view:lines", variant, _MOST_ADVICE, named=unnamed) or []
        if heading and (limited or found):
            yield _Part(_LIMITS, heading, dispensable)
            heading = None
        if limited:
            yield _Part(_LIMITS, limited, dispensable)
        words = part("findings.view:without_advice", variant) if says_why else None
        if words is not None:
            yield _Part(_LIMITS, words, _NEXT)
        for number, line in enumerate(found):
            yield _Part(_LIMITS, line, _NEXT if number else _ADVICE)


def _steps(report: RunReport, *, with_operations: bool) -> Iterator[_Part]:
    """Where the time of functions goes, the operations that take most of it, and what limits
    them.
    """
    contents = [goodput(report, with_notes=False)]
    if with_operations:
        explained = any(variant.get("advice") for variant in report.variants[:_MOST_FUNCTIONS])
        most = _FEWEST_OPERATIONS if explained else _MOST_OPERATIONS
        contents.append(operations(report, most=most))
    for content in contents:
        if content is not None:
            yield _Part(_LIMITS, Group(content, ""))
    yield from _limited(
        report.variants[:_MOST_FUNCTIONS], None, _BELOW_TABLE, says_why=not report.on_gpu
    )


def _table(report: RunReport, count: int) -> Block:
    """Of that many variants: the baseline, the best, and those that differ most."""
    if not _has_table(report):
        return Group()
    if count >= len(report.variants):
        return comparison_table(report)
    first, *others = report.variants
    others.sort(key=lambda variant: _weight(report, variant), reverse=True)
    names = {variant.name for variant in (first, *others[: count - 1])}
    more = f"and {plural(len(report.variants) - count, 'more variant')}: --verbose"
    return Group(comparison_table(report, names), Text(more, "dim"))


def _has_table(report: RunReport) -> bool:
    return report.compares and bool(report.timed)


def _weight(report: RunReport, variant: VariantReport) -> tuple[bool, float]:
    if report.functions:
        return False, variant.time_s.median if variant.time_s else 0.0
    comparison = report.comparison(variant.name)
    speedup = comparison.speedup if comparison else None
    return variant.name == report.best, abs(log(speedup)) if speedup else 0.0


def _rest(notes_left_out: int) -> Text:
    """Where the rest is."""
    more = f"{plural(notes_left_out, 'more note')}, " if notes_left_out else ""
    return Text(f"{more}all tables: --verbose (or gpulab, then h); raw times: --raw", "dim")
