"""The roofline of a device with the variants below it: a plot, the table of its points, and what
limits each; and the table of its ceilings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from gpulab.catalog.view import age
from gpulab.core.payloads import MATRIX, MEASURED, VECTOR
from gpulab.core.statuses import BoundKind
from gpulab.core.units import (
    operation_of_roof,
    percent_of_roof,
    plural,
    seconds,
    three_digits,
    times,
)
from gpulab.draw.bars import gauge
from gpulab.draw.blocks import Block, Fitted, Group, Table, Text, columns_table
from gpulab.draw.figure import Figure, letter_of
from gpulab.draw.plot import plot
from gpulab.draw.table import Column, fitting
from gpulab.features.roofline.bound import Cause, OperationPoint, Point, Roofline
from gpulab.features.roofline.events import Ceiling
from gpulab.features.roofline.figure import (
    FamilyRoofs,
    drawn_rate,
    family_roofs,
    first_family,
    per_second,
    roof_words,
    roofline_figure,
)
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines, sentence, sentence_with_place

_WORDS = {
    BoundKind.CACHE: "cache-resident",
    BoundKind.PAGE_FAULTS: "page-fault-bound",
    BoundKind.WAITING: "waiting",
    BoundKind.PREEMPTED: "contention",
    BoundKind.UNEXPLAINED: "unexplained",
    BoundKind.UNKNOWN: "unknown",
}
_NEAR = 0.9
"""A rate over the roof is the share that is printed, within this factor."""


def marked(cause: Cause) -> str:
    """The bound, with a mark where it is unsure."""
    word = "contention" if cause.bound == BoundKind.PREEMPTED else cause.bound
    return f"{word}{'?' * bool(cause.or_else)}"


def bound(cause: Cause) -> str:
    """Return what limits it as all tables call it, such as memory-bound, or contention?."""
    return f"{_bound(cause.bound)}{'?' * bool(cause.or_else)}"


def _bound(kind: BoundKind) -> str:
    return _WORDS.get(kind, f"{kind}-bound")


def limits(variants: Iterable[VariantReport]) -> Text:
    """A line a variant: its bound, and the evidence for it."""
    causes = [(variant.name, variant.roofline or variant.cause) for variant in variants]
    return Text("\n").join(_line(name, cause) for name, cause in causes if cause)


def reasons(points: Sequence[Point]) -> Text:
    """The same of points, each with its letter beside a plot."""
    text = Text()
    for index, point in enumerate(points):
        text.append(_line(f"{letter_of(index)} {point.variant}", point)).append("\n")
    return text


def _line(name: str, cause: Cause) -> Text:
    others = ""
    if cause.or_else:
        words = " or ".join(map(_bound, cause.or_else))
        others = f" (or {words}, within the intervals of times and roofs)"
    said = f": {sentence(cause.reason)}{others}"
    return Text.assemble(f"{name}: ", (bound(cause), "bold"), said)


def limit_table(variants: Sequence[VariantReport]) -> Table | None:
    """Return a row a variant: what limits it, and its share of the roof; None of less than two."""
    limited = [(each, each.roofline or each.cause) for each in variants]
    rows = [(variant, cause) for variant, cause in limited if cause]
    if len(rows) < 2:
        return None
    table = columns_table()
    table.add_column("variant", no_wrap=True, overflow="ellipsis", min_width=12)
    table.add_column("limit", no_wrap=True)
    has_points = any(variant.roofline for variant, _ in rows)
    if has_points:
        table.add_column("of roof", overflow="fold")
    for variant, cause in rows:
        limit = Text(bound(cause), "bold")
        share = [_share_of_roof(variant.roofline)] if has_points else []
        table.add_row(Text(variant.name), limit, *share)
    return table


def _share_of_roof(point: Point | None) -> Text:
    """A bar, and the share of which roof it is."""
    if point is None:
        return Text()
    share = point.fraction.value
    roof, _, kind = point.roof.rpartition(" ")
    named = f"{kind} {roof}" if roof in (MATRIX, VECTOR) else roof or kind
    words = f" {percent_of_roof(share):>4} % of {named}"
    return Text.assemble((gauge(share, 10), "cyan"), words)


def roofline_blocks(roofline: Roofline, family: str | None = None) -> list[Block]:
    """One family of dtypes below its roofs, a table of the points, and what must be known."""
    family = family or first_family(roofline)
    roofs = family_roofs(roofline.ceilings, family)
    figure = roofline_figure(roofline, family)
    blocks: list[Block] = [figure or Text(_why_none(roofline, roofs, family)), ""]
    if roofline.points:
        blocks.append(_point_table(roofline.points, family, roofline.noun))
    notes = [*_notes(roofline.points, family)]
    if figure is not None:
        notes.append(f"roofs: {'; '.join(map(roof_words, roofs.all))}")
    if roofline.earlier_s is not None:
        before = age(max(60.0, roofline.earlier_s))
        notes.append(f"roofs that the rounds did not measure: of a run {before} earlier")
    return [*blocks, *(Text(note, "dim") for note in notes)]


def roofline_view(
    roofline: Roofline, *, width: int, height: int, family: str | None = None
) -> Block:
    """The same on a screen, the plot as high as there is room."""
    figure, empty, *others = roofline_blocks(roofline, family)
    if not isinstance(figure, Figure):
        return Group(figure, empty, *others)
    rows = height - len(roofline.points) - len(others)
    return Group(plot(figure, width, max(rows, 14)), *others)


def _why_none(roofline: Roofline, roofs: FamilyRoofs, family: str) -> str:
    """Return what no figure can show: roofs that are not known, or those of work that only moves
    bytes, or of which no bytes are known.
    """
    memory = [] if roofs.memory else ["device memory"]
    if missing := memory + ([] if roofs.flats else [f"{family} arithmetic"]):
        unknown = f"no steady ceiling of {' or '.join(missing)} is known"
        return f"No roofline: {unknown}; gpulab --calibrate measures them."
    known = {roof[0].name: roof_words(roof) for roof in roofs.all}
    levels = {
        point.roof: f"{point.roof} {per_second(point.attainable, point.unit)}"
        for point in roofline.points
    }
    return f"roofs: {', '.join(known.get(roof, words) for roof, words in levels.items())}"


def _point_table(points: Sequence[Point], family: str, noun: str) -> Table:
    """A row a point: its letter, rate, intensity, share of its roof, and what limits it."""
    shares = [_percent(point) for point in points]
    digits = max(map(len, shares))
    table = columns_table(gap=1)
    table.add_column("", no_wrap=True)
    table.add_column(noun, overflow="ellipsis", min_width=4)
    for head in ("rate", "FLOP/byte"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("of roof", no_wrap=True)
    table.add_column("bound", no_wrap=True)
    for index, (point, share) in enumerate(zip(points, shares, strict=True)):
        star = "" if point.source == MEASURED else "*"
        cells = (
            letter_of(index),
            point.variant,
            per_second(point.rate.value, point.unit),
            _intensity(point.flops_per_byte),
            f"{share:>{digits}}{_ends(point)}{star}",
            marked(point),
        )
        table.add_row(*cells, style="" if point.family == family else "dim")
    return table


def _intensity(flops_per_byte: float | None) -> str:
    """In FLOP/byte; empty where no FLOPs or no bytes are declared."""
    if flops_per_byte is None:
        return ""
    return three_digits(flops_per_byte) if flops_per_byte >= 0.1 else f"{flops_per_byte:.2g}"


def _percent(point: Point) -> str:
    """Percent of what is attainable."""
    if isinstance(point, OperationPoint):
        return operation_of_roof(point.fraction.value)
    return f"{percent_of_roof(point.fraction.value)} %"


def _ends(point: Point) -> str:
    """Return how far the ends of the interval are from its middle, the time's error and the roof's:
    one figure, or two where they are not alike.
    """
    fraction = point.fraction
    if not fraction.has_interval:
        return ""
    low, high = fraction.ends
    below, above = 100 * (fraction.value - low), 100 * (high - fraction.value)
    if max(below, above, 1.5) > 2 * max(min(below, above), 1.5):
        return f" +{_width(above)} -{_width(below)}"
    return f" ±{_width((below + above) / 2)}"


def _width(points: float) -> str:
    """Points of per cent."""
    points = max(0.0, points)
    return f"{points:.{int(points < 9.95)}f}"


def _notes(points: Sequence[Point], family: str) -> Iterator[str]:
    """Yield what letters and marks alone do not say."""
    lettered = [(letter_of(index), point) for index, point in enumerate(points)]
    for other in dict.fromkeys(point.family for point in points if point.family != family):
        letters = [letter for letter, point in lettered if point.family == other]
        yield f"dim, in {other}: {','.join(letters)}"
    if sources := dict.fromkeys(point.source for point in points if point.source != MEASURED):
        yield f"* roof: {' / '.join(sources)}"
    scaled = [
        f"{letter} {times(point.clock_scale)}"
        for letter, point in lettered
        if point.clock_scale != 1
    ]
    if scaled:
        clock = "the SM clock of the step, read or at least that of its rate"
        yield f"roof scaled to {clock}: {', '.join(scaled)}"
    ratios = [
        f"{letter} {times(point.bytes_ratio)}" for letter, point in lettered if point.bytes_ratio
    ]
    if ratios:
        yield (
            f"measured / declared bytes: {', '.join(ratios)} (below 1x: caches such as the L2 "
            "serve the rest; above 1x: device memory moves more than the work needs)"
        )
    if drifted := [letter for letter, point in lettered if _has_drifted(point)]:
        yield (
            f"{','.join(drifted)}: share of the roof in the same rounds, as drawn; the machine "
            "drifted, so it is not the rate over the roof of the whole run"
        )
    if without := [letter for letter, point in lettered if not point.is_drawable]:
        yield f"no FLOP/byte: {','.join(without)}"


def _has_drifted(point: Point) -> bool:
    """Return whether its share is not the rate over the roof, scaled to its clock."""
    if not point.is_drawable:
        return False
    drawn = drawn_rate(point).value * point.clock_scale
    return not _NEAR < drawn / point.rate.value < 1 / _NEAR


def ceilings(report: RunReport) -> Block:
    """The device, a row a ceiling, and what must be known of them."""
    parts: list[Block] = []
    if report.device:
        threads = "" if report.on_gpu else f", {plural(report.device.threads, 'thread')}"
        parts += [Text(f"{report.device.name}{threads}", "bold"), ""]
    if report.ceilings and report.ceilings.ceilings:
        parts += [ceiling_table(report.ceilings.ceilings), ""]
        if report.ceilings.at:
            parts.append(Text(f"measured at {report.ceilings.at} (UTC)", "dim"))
    if report.reason:
        parts.append(Text(f"{report.outcome}: {sentence_with_place(report.reason)}", "bold red"))
    parts += [Text(line) for line in lines(report.explanations)]
    parts += [Text(f"note: {line}", "yellow") for line in lines(report.findings)]
    return Group(*parts)


def ceiling_table(ceilings: Sequence[Ceiling]) -> Fitted:
    """A row a ceiling, with as many columns as there is room for."""
    return Fitted(lambda width: [_table(ceilings, width)])


_COLUMNS = (
    Column("ceiling", (), gap=0),
    Column("best", (), right=True),
    Column("median", (), right=True, dispensable=2),
    Column("spread", (), right=True, dispensable=1),
    Column("source", ()),
    Column("SM MHz", (), right=True, dispensable=3),
    Column("method", (), dispensable=4, most=24),
)


def _table(ceilings: Sequence[Ceiling], width: int) -> Table:
    texts = zip(*map(_cells, ceilings), strict=True)
    columns = [replace(each, texts=column) for each, column in zip(_COLUMNS, texts, strict=True)]
    shown = fitting([column for column in columns if any(column.texts)], width)
    table = columns_table()
    for column in shown:
        justify: Literal["left", "right"] = "right" if column.right else "left"
        no_wrap = column.most is None
        table.add_column(column.head, justify=justify, no_wrap=no_wrap, overflow="fold")
    for row in zip(*(column.texts for column in shown), strict=True):
        table.add_row(*map(Text, row))
    return table


def _cells(ceiling: Ceiling) -> tuple[str, ...]:
    median = clock = ""
    if ceiling.source == MEASURED:
        median = _amount(ceiling, ceiling.median)
    if ceiling.sm_mhz:
        clock = f"{ceiling.sm_mhz:,.0f}"
    spread = f"{ceiling.spread:.1%}" if ceiling.samples > 1 else ""
    method = sentence(ceiling.method) if ceiling.method else ""
    best = _amount(ceiling, ceiling.best)
    return ceiling.name, best, median, spread, _source(ceiling), clock, method


def _amount(ceiling: Ceiling, value: float) -> str:
    """A value of a ceiling in its unit."""
    return seconds(value) if ceiling.unit == "s" else per_second(value, ceiling.unit)


def _source(ceiling: Ceiling) -> str:
    if ceiling.steady:
        return ceiling.source
    low, high = sorted((ceiling.best, ceiling.median))
    return f"unsteady {times(high / low)}"
