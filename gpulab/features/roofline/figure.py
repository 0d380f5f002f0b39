"""The roofline as a figure: the roofs of one type of numbers, and the points below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulab.core.estimate import Estimate
from gpulab.core.payloads import CACHE, MATRIX, MEASURED, MEMORY, SOURCES, VECTOR, family
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


@dataclass(frozen=True)
class Roof:
    """A ceiling, and what less good sources say of the same."""

    ceiling: Ceiling
    others: tuple[Ceiling, ...] = ()

    @property
    def median(self) -> float:
        return self.ceiling.median


@dataclass(frozen=True)
class FamilyRoofs:
    """The roofs of one family: two slopes, and up to two flat ones, the highest first."""

    memory: Roof | None
    cache: Roof | None
    flats: tuple[Roof, ...]

    @property
    def all(self) -> list[Roof]:
        return [roof for roof in (self.cache, self.memory, *self.flats) if roof is not None]

    @property
    def ridge(self) -> float:
        """FLOP/byte at which device memory no longer limits."""
        return self.flats[0].median / self.memory.median if self.flats and self.memory else 0.0


def family_roofs(ceilings: Sequence[Ceiling], dtypes: str) -> FamilyRoofs:
    """The roofs of the family of `dtypes`."""
    usable = [ceiling for ceiling in ceilings if ceiling.median > 0]
    kinds = {
        ceiling.kind
        for ceiling in usable
        if ceiling.roof in (MATRIX, VECTOR) and family(ceiling.kind) == dtypes
    }
    flats = [roof for roof in (_roof(usable, MATRIX, kinds), _roof(usable, VECTOR, kinds)) if roof]
    flats.sort(key=lambda roof: roof.median, reverse=True)
    return FamilyRoofs(_roof(usable, MEMORY), _roof(usable, CACHE), tuple(flats))


def _roof(
    ceilings: Sequence[Ceiling], roof: str, kinds: Iterable[str] | None = None
) -> Roof | None:
    by_source = (
        RoofSet([ceiling for ceiling in ceilings if ceiling.source == source]).best(roof, kinds)
        for source in SOURCES
    )
    best = [ceiling for ceiling in by_source if ceiling is not None]
    return Roof(best[0], tuple(best[1:])) if best else None


def families(roofline: Roofline) -> list[str]:
    """The types of numbers of the points, in their order."""
    return list(dict.fromkeys(point.family for point in roofline.points))


def first_family(roofline: Roofline) -> str:
    """Return what is drawn where nobody chose: the first that has both a point to draw and roofs
    above it.
    """
    candidates = [*families(roofline), family(None)]
    drawable = {point.family for point in roofline.points if point.is_drawable}
    roofed = (
        dtypes
        for dtypes in candidates
        if dtypes in drawable and family_roofs(roofline.ceilings, dtypes).flats
    )
    return next(roofed, candidates[0])


def per_second(value: float, unit: str) -> str:
    """Such as 29.1 GFLOP/s."""
    text = rate(value)
    return f"{text}{unit}" if text[-1].isalpha() else f"{text} {unit}"


def roof_words(roof: Roof) -> str:
    """Return what a roof is called: 62.8 TFLOP/s fp32 vector (datasheet 67.0 TFLOP/s), or
    67.0 TFLOP/s fp32 vector, datasheet.
    """
    ceiling = roof.ceiling
    is_slope = ceiling.roof in (MEMORY, CACHE)
    named = ceiling.roof if is_slope else f"{ceiling.kind} {ceiling.roof}"
    asides = [ceiling.kind] if is_slope and ceiling.kind else []
    named += f", {ceiling.source}" if ceiling.source != MEASURED else ""
    asides += [f"{each.source} {per_second(each.median, each.unit)}" for each in roof.others]
    words = f"{per_second(ceiling.median, ceiling.unit)} {named}"
    return f"{words} ({', '.join(asides)})" if asides else words


def roofline_figure(roofline: Roofline, dtypes: str | None = None) -> Figure | None:
    """The roofs of a family and its points; those of other families are dim. None where a roof is
    not known, or no point has an intensity.
    """
    chosen = dtypes or first_family(roofline)
    roofs = family_roofs(roofline.ceilings, chosen)
    points = [point for point in roofline.points if point.is_drawable]
    if roofs.memory is None or not roofs.flats or (roofline.points and not points):
        return None
    x, y = _scales(roofs, points)
    return Figure(
        f"FLOP/s  {chosen}, ridge at {three_digits(roofs.ridge)} FLOP/byte",
        x,
        y,
        [*_lines(roofs, x), *_arrows(roofline)],
        [
            _mark(index, point, dim=point.family != chosen)
            for index, point in enumerate(roofline.points)
            if point.is_drawable
        ],
    )


def drawn_rate(point: Point) -> Estimate:
    """Return the rate that has its share of the roof as it is drawn: on a machine that drifts, the
    share is of the roof in the same rounds, and the roof that is drawn is of the whole run.
    """
    factor = point.fraction.value * point.attainable / point.rate.value
    return point.rate.moved(lambda rate: rate * (factor or 1.0))


def _scales(roofs: FamilyRoofs, points: Sequence[Point]) -> tuple[Scale, Scale]:
    """The ridge and the points, with some room around them."""
    assert roofs.memory is not None
    intensities = [point.flops_per_byte or roofs.ridge for point in points]
    left = min([roofs.ridge / _AROUND_RIDGE, *intensities]) / _ROOM
    right = max([roofs.ridge * _AROUND_RIDGE, *(_ROOM * each for each in intensities)])
    roof = roofs.flats[0].median
    rates = [drawn_rate(point).value for point in points] or [roofs.memory.median * left]
    top = max(_ROOM * roof, *(_ROOM / 2 * rate for rate in rates))
    bottom = min(*rates, roof / _AROUND_RIDGE) / _ROOM
    x = Scale("FLOP/byte", left, right, decade, ticks=decades(left, right))
    return x, Scale("FLOP/s", bottom, top, decade, ticks=decades(bottom, top))


def _lines(roofs: FamilyRoofs, x: Scale) -> list[Line]:
    """Slopes up to the highest flat roof, then flat ones from where the steepest slope meets
    them.
    """
    top = roofs.flats[0].median
    slopes = [roof for roof in (roofs.cache, roofs.memory) if roof is not None]
    steepest = max(roof.median for roof in slopes)
    lines = []
    for roof in slopes:
        ends = [(x.low, x.low * roof.median), (top / roof.median, top)]
        style = _STYLES[roof.ceiling.roof]
        dashed = roof.ceiling.source != MEASURED
        below = roof.median < steepest
        lines.append(Line(ends, roof_words(roof), style, dashed, below))
    for number, roof in enumerate(roofs.flats):
        if number and roof.median * _NEAR >= top:
            continue
        ends = [(roof.median / steepest, roof.median), (x.high, roof.median)]
        lines.append(Line(ends, roof_words(roof), "", roof.ceiling.source != MEASURED))
    return lines


def _arrows(roofline: Roofline) -> list[Line]:
    """From what a point was to what it became."""
    lines = []
    for start, end in roofline.arrows:
        before, after = roofline.points[start], roofline.points[end]
        if before.is_drawable and after.is_drawable:
            both = (before, after)
            ends = [(point.flops_per_byte or 0.0, drawn_rate(point).value) for point in both]
            lines.append(Line(ends, style="cyan", dashed=True))
    return lines


def _mark(index: int, point: Point, *, dim: bool) -> Mark:
    style = "dim" if dim else ""
    intensity = point.flops_per_byte or 0.0
    rate = drawn_rate(point)
    name = point.variant
    return Mark(letter_of(index), name, intensity, rate.value, style, rate.low, rate.high)
