"""The roofline of a device with the variants below it: a plot, and the table of its points."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpulab.core.payloads import MATRIX, MEASURED, MEMORY, VECTOR
from gpulab.core.payloads import family as family_of
from gpulab.core.statuses import BoundKind
from gpulab.core.units import operation_of_roof, percent_of_roof, three_digits, times
from gpulab.draw.bars import gauge
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.draw.figure import letter_of
from gpulab.draw.plot import plot
from gpulab.features.roofline.bound import Cause, OperationPoint, Point, Roofline
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.figure import (
    FamilyRoofs,
    drawn_rate,
    family_roofs,
    first_family,
    per_second,
    roof_words,
    roofline_figure,
)
from gpulab.report.report import VariantReport
from gpulab.report.sentences import sentence

_WORDS = {
    BoundKind.CACHE: "cache-resident",
    BoundKind.PAGE_FAULTS: "page-fault-bound",
    BoundKind.WAITING: "waiting",
    BoundKind.PREEMPTED: "contention",
    BoundKind.UNEXPLAINED: "unexplained",
    BoundKind.UNKNOWN: "unknown",
}


def marked(cause: Cause | Point) -> str:
    """The bound, with a mark where it is unsure."""
    word = _WORDS[cause.bound] if cause.bound == BoundKind.PREEMPTED else cause.bound
    return f"{word}{'?' * bool(cause.or_else)}"


def reasons(points: Sequence[Point], *, letters: bool = True) -> Text:
    """A line a point: its letter beside a plot, its bound, and the evidence for it."""
    text = Text()
    for index, point in enumerate(points):
        _add(text, f"{f'{letter_of(index)} ' * letters}{point.variant}", point)
    return text


def causes(variants: Iterable[VariantReport]) -> Text:
    """The same of variants that no roofline has a point for."""
    text = Text()
    for variant in variants:
        if variant.cause and not variant.roofline:
            _add(text, variant.name, variant.cause)
    return text


def limits(variants: Sequence[VariantReport]) -> Text:
    """Return what limits each, with points first, and what to do, without letters."""
    points = [variant.roofline for variant in variants if variant.roofline]
    text = reasons(points, letters=False).append(causes(variants))
    text.rstrip()
    return text


_NAME = 12
"""Cells that a name keeps in a narrow table."""


def limit_table(variants: Sequence[VariantReport]) -> Table | None:
    """Return a row a variant: what limits it, and its share of the roof; None of less than two."""
    limited = [(each, each.roofline or each.cause) for each in variants]
    rows = [(variant, cause) for variant, cause in limited if cause]
    if len(rows) < 2:
        return None
    table = columns_table()
    table.add_column("variant", no_wrap=True, overflow="ellipsis", min_width=_NAME)
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
    return Text.assemble((gauge(share, _CELLS_OF_SHARE), "cyan"), words)


def bound(cause: Cause | Point) -> str:
    """Return what limits it as all tables call it, such as memory-bound, or contention?."""
    return f"{_bound(cause.bound)}{'?' * bool(cause.or_else)}"


def _bound(kind: BoundKind) -> str:
    return _WORDS.get(kind, f"{kind}-bound")


def _add(text: Text, name: str, cause: Cause | Point) -> None:
    words = [_bound(kind) for kind in (cause.bound, *cause.or_else)]
    others = ""
    if cause.or_else:
        others = f" (or {' or '.join(words[1:])}, within the intervals of times and roofs)"
    text.append(f"{name}: ")
    text.append(f"{words[0]}{'?' * bool(cause.or_else)}", "bold")
    text.append(f": {sentence(cause.reason)}{others}" + "\n")


_UNLIKE, _FAR_END = 2.0, 3.0
"""Ends of an interval get a figure each where they differ by this factor, and one is so many points
away.
"""
_NEAR = 0.9
"""A rate over the roof is the share that is printed, within this factor."""
_GAP, _SHARE_OF_TABLE, _LEAST_TABLE = 3, 0.42, 64
_BESIDE = 140
"""Columns from which on the table stands beside the plot."""
_FEWEST_ROWS, _CELLS_OF_SHARE = 14, 10


def roofline_blocks(roofline: Roofline, family: str | None = None) -> list[Block]:
    """One family of dtypes below its roofs, a table of the points, and what must be known."""
    family = family or first_family(roofline)
    figure = roofline_figure(roofline, family)
    blocks: list[Block] = []
    if figure is not None:
        blocks += [figure, ""]
    else:
        roofs = family_roofs(roofline.ceilings, family)
        complete = bool(roofs.memory and roofs.flats)
        reason = _levels(roofline.points, roofs) if complete else _missing(roofline, roofs, family)
        blocks += [Text(reason), ""]
    if roofline.points:
        blocks.append(_point_table(roofline.points, family, roofline.noun))
    notes = _notes(roofline.points, family)
    if figure is not None:
        roofs = family_roofs(roofline.ceilings, family)
        notes.append(f"roofs: {'; '.join(map(roof_words, roofs.all))}")
    return [*blocks, *(Text(note, "dim") for note in notes)]


def roofline_view(
    roofline: Roofline, *, width: int, height: int, family: str | None = None
) -> Block:
    """The same on a screen: the table stands beside the plot where there is room."""
    figure = roofline_figure(roofline, family)
    blocks = roofline_blocks(roofline, family)
    if figure is None:
        return Group(*blocks)
    others = blocks[2:]
    if roofline.points and width >= _BESIDE:
        right = max(_LEAST_TABLE, int(width * _SHARE_OF_TABLE))
        columns = Table(_GAP, show_header=False)
        columns.add_column(width=width - right - _GAP, no_wrap=True)
        columns.add_column(width=right)
        drawn = plot(figure, width - right - _GAP, max(height, _FEWEST_ROWS))
        columns.add_row(drawn, Group(*others))
        return columns
    rows = height - len(roofline.points) - len(others)
    return Group(plot(figure, width, max(rows, _FEWEST_ROWS)), *others)


def _point_table(points: Sequence[Point], family: str, noun: str) -> Table:
    """A row a point: its letter, rate, intensity, share of its roof, and what limits it."""
    shares = _shares(points)
    table = columns_table(gap=1)
    table.add_column("", no_wrap=True)
    table.add_column(noun, overflow="ellipsis", min_width=4)
    for head in ("rate", "FLOP/byte"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("of roof", no_wrap=True)
    table.add_column("bound", no_wrap=True)
    for index, point in enumerate(points):
        star = "" if point.source == MEASURED else "*"
        cells = (
            letter_of(index),
            point.variant,
            per_second(point.rate.value, point.unit),
            _intensity(point),
            f"{shares[index]}{star}",
            marked(point),
        )
        table.add_row(*cells, style="" if point.family == family else "dim")
    return table


def _intensity(point: Point) -> str:
    """In FLOP/byte; empty where no FLOPs or no bytes are declared."""
    value = point.flops_per_byte
    if value is None:
        return ""
    return three_digits(value) if value >= 0.1 else f"{value:.2g}"


def _shares(points: Sequence[Point]) -> list[str]:
    """Percent of what is attainable, with its interval: the time's error and the roof's."""
    values = [
        operation_of_roof(point.fraction.value)
        if isinstance(point, OperationPoint)
        else f"{percent_of_roof(point.fraction.value)} %"
        for point in points
    ]
    digits = max(map(len, values), default=0)
    shares = []
    for point, value in zip(points, values, strict=True):
        shares.append(f"{value:>{digits}}{_ends(point)}")
    return shares


def _ends(point: Point) -> str:
    """Return how far the ends of an interval are from its middle: one figure, or two where they are
    not alike.
    """
    fraction = point.fraction
    if not fraction.has_interval:
        return ""
    low, high = fraction.ends
    below, above = 100 * (fraction.value - low), 100 * (high - fraction.value)
    if max(below, above) > max(_UNLIKE * min(below, above), _FAR_END):
        return f" +{_points(above)} -{_points(below)}"
    return f" ±{_points((below + above) / 2)}"


def _points(width: float) -> str:
    """Points of per cent."""
    width = max(0.0, width)
    return f"{width:.{int(width < 9.95)}f}"


def _notes(points: Sequence[Point], family: str) -> list[str]:
    """Return what letters and marks alone do not say."""
    notes = []
    others: dict[str, list[str]] = {}
    for index, point in enumerate(points):
        if point.family != family:
            others.setdefault(point.family, []).append(letter_of(index))
    notes += [f"dim, in {dtype}: {','.join(letters)}" for dtype, letters in others.items()]
    if sources := dict.fromkeys(point.source for point in points if point.source != MEASURED):
        notes.append(f"* roof: {' / '.join(sources)}")
    ratios = [
        f"{letter_of(index)} {times(point.bytes_ratio)}"
        for index, point in enumerate(points)
        if point.bytes_ratio
    ]
    if ratios:
        notes.append(f"measured / declared bytes: {', '.join(ratios)}{_meaning(points)}")
    drifted = [
        letter_of(index)
        for index, point in enumerate(points)
        if point.is_drawable and not _NEAR < drawn_rate(point).value / point.rate.value < 1 / _NEAR
    ]
    if drifted:
        notes.append(
            f"{','.join(drifted)}: share of the roof in the same rounds, as drawn; the machine "
            "drifted, so it is not the rate over the roof of the whole run"
        )
    if without := [letter_of(place) for place, each in enumerate(points) if not each.is_drawable]:
        notes.append(f"no FLOP/byte: {','.join(without)}")
    return notes


def _meaning(points: Sequence[Point]) -> str:
    """Explain ratios of bytes: what is not measured at device memory, caches served."""
    ratios = [point.bytes_ratio for point in points if point.bytes_ratio]
    said = []
    if min(ratios) < 1:
        said.append("below 1x: caches such as the L2 serve the rest")
    if max(ratios) > 1:
        said.append("above 1x: device memory moves more than the work needs")
    return f" ({'; '.join(said)})"


def _levels(points: Sequence[Point], roofs: FamilyRoofs) -> str:
    """The roofs of work that only moves bytes, or of which no bytes are known; what other sources
    say of them.
    """
    known = {roof.ceiling.name: roof_words(roof) for roof in roofs.all}
    levels = {
        point.roof: known.get(
            point.roof, f"{point.roof} {per_second(point.attainable, point.unit)}"
        )
        for point in points
    }
    return f"roofs: {', '.join(levels.values())}"


def _missing(roofline: Roofline, roofs: FamilyRoofs, family: str) -> str:
    if not roofline.ceilings:
        return "No roofline: no ceiling is known; gpulab --calibrate measures them."
    missing = []
    if not roofs.memory:
        missing.append("device memory")
    if not roofs.flats:
        missing.append(f"{family} arithmetic")
    unsteady = RoofSet(roofline.ceilings).unsteady()
    disturbed = {
        ceiling.roof if ceiling.roof == MEMORY else family_of(ceiling.kind) for ceiling in unsteady
    }
    reason = "none was measured here"
    if disturbed & ({family} if roofs.memory else {MEMORY}):
        reason = "the machine was too unsteady: run it again when it is quiet"
    return f"No roofline: no ceiling is known of {' or '.join(missing)}: {reason}."
