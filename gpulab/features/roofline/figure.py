"""The roofline as a figure: the roofs of one type of numbers, and the points below them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpulab.core.estimate import Estimate
from gpulab.core.payloads import CACHE, MATRIX, MEASURED, MEMORY, VECTOR, family
from gpulab.core.units import rate, three_digits
from gpulab.draw.figure import Figure, Line, Mark, Scale, decade, decades, letter_of
from gpulab.features.roofline.bound import Point, Roofline
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.events import Ceiling

_ROOM, _AROUND_RIDGE = 3.0, 10.0
"""Factors: how far the axes go beyond the outermost point, and at least beyond the ridge."""
_NEAR = 1.25
"""Flat roofs that differ by less are one line, with the name of the higher one."""
_STYLES = {MEMORY: "magenta", CACHE: "bright_magenta"}
"""Of slopes; flat roofs have the colour of text."""


Roof = Sequence[Ceiling]
"""A ceiling, and what less good sources say of the same; empty where none is known."""


@dataclass(frozen=True)
class FamilyRoofs:
    """The roofs of one family: two slopes, and up to two flat ones, the highest first."""

    memory: Roof
    cache: Roof
    flats: Sequence[Roof]

    @property
    def all(self) -> list[Roof]:
        return [roof for roof in (self.cache, self.memory, *self.flats) if roof]


def family_roofs(ceilings: Sequence[Ceiling], dtypes: str) -> FamilyRoofs:
    """The roofs of the family of `dtypes`."""
    roofs = RoofSet(ceilings)
    kinds = {ceiling.kind for ceiling in ceilings if family(ceiling.kind) == dtypes}
    flats = [roof for units in (MATRIX, VECTOR) if (roof := roofs.by_source(units, kinds))]
    flats.sort(key=lambda roof: roof[0].median, reverse=True)
    return FamilyRoofs(roofs.by_source(MEMORY), roofs.by_source(CACHE), flats)


def families(roofline: Roofline) -> list[str]:
    """The types of numbers of the points, in their order."""
    return list(dict.fromkeys(point.family for point in roofline.points))


def first_family(roofline: Roofline) -> str:
    """Return what is drawn where nobody chose: the first that has both a point to draw and roofs
    above it.
    """
    drawable = dict.fromkeys(point.family for point in roofline.points if point.is_drawable)
    roofed = (each for each in drawable if family_roofs(roofline.ceilings, each).flats)
    return next(roofed, next(iter(families(roofline)), family(None)))


def per_second(value: float, unit: str) -> str:
    """Such as 29.1 GFLOP/s."""
    text = rate(value)
    return f"{text}{unit}" if text[-1].isalpha() else f"{text} {unit}"


def roof_words(roof: Roof) -> str:
    """Return what a roof is called: 62.8 TFLOP/s fp32 vector (datasheet 67.0 TFLOP/s), or
    67.0 TFLOP/s fp32 vector, datasheet.
    """
    ceiling, *others = roof
    is_slope = ceiling.roof in (MEMORY, CACHE)
    named = ceiling.roof if is_slope else f"{ceiling.kind} {ceiling.roof}"
    asides = [ceiling.kind] if is_slope and ceiling.kind else []
    if ceiling.source != MEASURED:
        named += f", {ceiling.source}"
    asides += [f"{each.source} {per_second(each.median, each.unit)}" for each in others]
    words = f"{per_second(ceiling.median, ceiling.unit)} {named}"
    return f"{words} ({', '.join(asides)})" if asides else words


def roofline_figure(roofline: Roofline, dtypes: str | None = None) -> Figure | None:
    """The roofs of a family and its points; those of other families are dim. None where a roof is
    not known, or no point has an intensity.
    """
    chosen = dtypes or first_family(roofline)
    roofs = family_roofs(roofline.ceilings, chosen)
    points = [point for point in roofline.points if point.is_drawable]
    if not roofs.memory or not roofs.flats or (roofline.points and not points):
        return None
    top = roofs.flats[0][0].median
    memory = roofs.memory[0].median
    ridge = top / memory
    intensities = [point.flops_per_byte or ridge for point in points]
    left = min([ridge / _AROUND_RIDGE, *intensities]) / _ROOM
    right = max([ridge * _AROUND_RIDGE, *(_ROOM * each for each in intensities)])
    rates = [drawn_rate(point).value for point in points] or [memory * left]
    highest = max(_ROOM * top, *(_ROOM / 2 * rate for rate in rates))
    lowest = min(*rates, top / _AROUND_RIDGE) / _ROOM
    return Figure(
        f"FLOP/s  {chosen}, ridge at {three_digits(ridge)} FLOP/byte",
        Scale("FLOP/byte", left, right, decade, ticks=decades(left, right)),
        Scale("FLOP/s", lowest, highest, decade, ticks=decades(lowest, highest)),
        [*_lines(roofs, left, right), *_arrows(roofline)],
        [
            _mark(index, point, dim=point.family != chosen)
            for index, point in enumerate(roofline.points)
            if point.is_drawable
        ],
    )


def drawn_rate(point: Point) -> Estimate:
    """Return the rate that has its share of the roof as it is drawn: on a machine that drifts, the
    share is of the roof in the same rounds, and the roof that is drawn is of the whole run, at the
    clock at which it was measured.
    """
    drawn = point.fraction.value * point.attainable / point.clock_scale
    factor = drawn / point.rate.value or 1.0
    return point.rate.moved(lambda rate: rate * factor)


def _lines(roofs: FamilyRoofs, left: float, right: float) -> Iterator[Line]:
    """Slopes up to the highest flat roof, then flat ones from where the steepest slope meets
    them.
    """
    top = roofs.flats[0][0].median
    slopes = [roof for roof in (roofs.cache, roofs.memory) if roof]
    steepest = max(roof[0].median for roof in slopes)
    for roof in slopes:
        slope = roof[0].median
        ends = [(left, left * slope), (top / slope, top)]
        style = _STYLES[roof[0].roof]
        dashed = roof[0].source != MEASURED
        yield Line(ends, roof_words(roof), style, dashed, below=slope < steepest)
    for number, roof in enumerate(roofs.flats):
        height = roof[0].median
        if not number or height * _NEAR < top:
            ends = [(height / steepest, height), (right, height)]
            yield Line(ends, roof_words(roof), dashed=roof[0].source != MEASURED)


def _arrows(roofline: Roofline) -> Iterator[Line]:
    """From what a point was to what it became."""
    for start, end in roofline.arrows:
        both = (roofline.points[start], roofline.points[end])
        if all(point.is_drawable for point in both):
            ends = [(point.flops_per_byte or 0.0, drawn_rate(point).value) for point in both]
            yield Line(ends, style="cyan", dashed=True)


def _mark(index: int, point: Point, *, dim: bool) -> Mark:
    rate = drawn_rate(point)
    intensity = point.flops_per_byte or 0.0
    style = "dim" if dim else ""
    letter = letter_of(index)
    return Mark(letter, point.variant, intensity, rate.value, style, rate.low, rate.high)
