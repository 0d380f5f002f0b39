"""Runs for slides, as a picture by matplotlib: imported only where one is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from gpulab.core.files import PICTURES, write_whole
from gpulab.core.limits import NAME_LENGTH
from gpulab.core.payloads import CACHE, MATRIX, MEASURED, MEMORY, VECTOR, family
from gpulab.core.statuses import Per
from gpulab.core.text import cut, one_line
from gpulab.core.units import rate, seconds, span, times
from gpulab.draw.axis import tick_seconds
from gpulab.draw.chart import letter_of
from gpulab.draw.styles import STYLES
from gpulab.features.roofline.bound import Point, Roofline
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.ceilings_view import amount
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import first_family
from gpulab.report.report import RunReport, Time, VariantReport
from gpulab.scenario import Param
from gpulab.show.view import short_run
from gpulab.stats.verdicts import shown

if TYPE_CHECKING:
    from gpulab.features.roofline.events import Ceiling

_INCHES, _DPI = 6.5, 150
_GRAY = "tab:gray"
_COLOURS = {"green": "tab:green", "red": "tab:red", "cyan": "tab:cyan", "yellow": "tab:olive"}
"""Of the bars of times, by the style of their verdict."""
_LEFT, _DECADES, _HEADROOM = 1e-2, 1e2, 10
_APART = 0.1
"""Roofs nearer to each other than this share are one line."""
_LOG_FROM = 20
"""Times of a longest that is so many times the shortest are on a logarithmic axis."""
_FAR_APART = 4
"""The same of the values of a parameter."""
_FEWEST_ROWS, _BAR = 5, 0.6


def image(reports: Sequence[RunReport], kind: str) -> bytes:
    """The picture of runs as a file of that kind, such as svg. ValueError where there is none."""
    return _encoded(_drawn(reports), kind)


def plotted(reports: Sequence[RunReport], path: str | PathLike[str] | None = None) -> Figure:
    """The picture of runs, which is written to the path as well. ValueError where there is none, or
    the path has another ending.
    """
    target = Path(path) if path is not None else None
    if target and target.suffix.lower() not in PICTURES:
        raise ValueError(f"{target}: the name ends in {', '.join(PICTURES)}")
    figure = _drawn(reports)
    if target:
        write_whole(target, _encoded(figure, target.suffix.lower().lstrip(".")))
    return figure


class Picture(Figure):
    """Notebooks know figures of pyplot only."""

    def _repr_png_(self) -> bytes:
        return _encoded(self, "png")


@contextmanager
def _own_defaults() -> Iterator[None]:
    """The same picture on every machine."""
    # of glyphs that its font lacks
    with matplotlib.rc_context(), warnings.catch_warnings(action="ignore"):
        matplotlib.rcdefaults()
        yield


@_own_defaults()
def _drawn(reports: Sequence[RunReport]) -> Figure:
    return picture(reports[0]) if len(reports) == 1 else curves(reports)


@_own_defaults()
def _encoded(figure: Figure, kind: str) -> bytes:
    file = BytesIO()
    # by which --plot knows what it may replace
    made_by = "Software" if kind == "png" else "Creator"
    figure.savefig(file, format=kind, metadata={made_by: "gpulab"})
    return file.getvalue()


def picture(report: RunReport) -> Figure:
    """Of one run, whichever of its two halves there is something to see in."""
    roofline = roofline_of(report)
    timed = report.timed
    halves: list[Callable[[Axes], None]] = []
    halves += [lambda axes: _draw_roofline(axes, roofline)] if roofline else []
    halves += [lambda axes: _draw_times(axes, report, timed)] if timed else []
    figure = _figure(max(1, len(halves)))
    _name(figure, report, report.params)
    for number, draw in enumerate(halves, 1):
        draw(figure.add_subplot(1, len(halves), number))
    return figure


def curves(reports: Sequence[RunReport]) -> Figure:
    """Of runs of one scenario that differ in one parameter: a curve for each variant. ValueError of
    others.
    """
    parameter = _varied(reports)
    first = reports[0]
    fixed = {name: value for name, value in first.params.items() if name != parameter}
    figure = _figure(1)
    _name(figure, first, fixed)
    _draw_curves(figure.add_subplot(), parameter, reports)
    return figure


def _figure(halves: int) -> Figure:
    size = (_INCHES * halves, _INCHES * 0.75)
    return Picture(figsize=size, dpi=_DPI, layout="constrained")


def _name(figure: Figure, report: RunReport, params: Mapping[str, Param]) -> None:
    """What ran, above the figure; below that on what, and with which parameters."""
    title = report.title.partition(": ")[2] or report.title
    heading = f"{report.scenario}{f': {title}' if title else ''}"
    facts = [report.device.name] if report.device else []
    facts += [f"{name}={value}" for name, value in params.items()]
    facts += short_run(report)
    figure.suptitle(f"{_text(heading)}\n{_text(' · '.join(facts))}", fontsize=10)


def _varied(reports: Sequence[RunReport]) -> str:
    """The one parameter in which runs differ."""
    if len({report.scenario for report in reports}) != 1:
        raise ValueError("a curve is of several runs of one scenario")
    names = dict.fromkeys(name for report in reports for name in report.params)
    varied = [name for name in names if len({report.params.get(name) for report in reports}) > 1]
    if len(varied) != 1:
        found = ", ".join(varied) or "none"
        raise ValueError(f"a curve is of runs that differ in one parameter; these in: {found}")
    return varied[0]


def _draw_curves(axes: Axes, parameter: str, reports: Sequence[RunReport]) -> None:
    """Per item where a step of theirs has several, since these may change with the parameter."""
    timed = [
        (report.params[parameter], variant)
        for report in reports
        for variant in report.variants
        if variant.time_s and parameter in report.params
    ]
    if not timed:
        raise ValueError("a curve is of runs that measured times")
    per = Per.ITEM if any((variant.items or 1) != 1 for _, variant in timed) else Per.STEP
    places = _places([value for value, _ in timed])
    ends: list[float] = []
    for name in dict.fromkeys(variant.name for _, variant in timed):
        points = []
        for value, variant in timed:
            time = variant.time_per(per)
            if variant.name == name and time:
                points.append((places[value], time.median, *time.ends))
        points.sort()
        x, medians, lows, highs = zip(*points, strict=True)
        below = [median - low for median, low in zip(medians, lows, strict=True)]
        above = [high - median for median, high in zip(medians, highs, strict=True)]
        label = _text(name)
        axes.errorbar(x, medians, yerr=[below, above], fmt="o-", capsize=3, label=label)
        ends += [*lows, *highs]
    _set_scale_of_values(axes, places)
    axes.set_xlabel(_text(parameter))
    logarithmic = max(ends) > _LOG_FROM * min(ends)
    if logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    _label_times(axes.yaxis)
    axes.set_ylabel(_of_times(per, reports[0].method.confidence, logarithmic=logarithmic))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)


def _places(values: Iterable[Param]) -> dict[Param, float]:
    """Numbers lie where they are, others one beside the other."""
    distinct = list(dict.fromkeys(values))
    if any(isinstance(value, (str, bool)) for value in distinct):
        return {value: float(place) for place, value in enumerate(distinct)}
    return {value: float(value) for value in distinct}


def _set_scale_of_values(axes: Axes, places: Mapping[Param, float]) -> None:
    """A tick for each value; logarithmic where they are far apart."""
    numbers = [place for value, place in places.items() if not isinstance(value, (str, bool))]
    if numbers and min(numbers) > 0 and max(numbers) > _FAR_APART * min(numbers):
        axes.set_xscale("log")
    axes.minorticks_off()
    ordered = sorted(places, key=lambda value: places[value])
    axes.set_xticks([places[value] for value in ordered], [_text(str(value)) for value in ordered])


def _label_times(axis: Axis) -> None:
    """Times with their units."""
    axis.set_major_formatter(lambda value, _: tick_seconds(value) if value > 0 else "0")
    axis.set_minor_formatter(NullFormatter())


def _of_times(per: Per, confidence: float, *, logarithmic: bool) -> str:
    scale = ", logarithmic" if logarithmic else ""
    return f"time per {per}{scale}: median with its {confidence:.0%} interval"


def _text(text: str) -> str:
    """One line that is shown as it stands: dollars begin no formula, which could be broken, or take
    for ever.
    """
    return cut(one_line(text), NAME_LENGTH).replace("$", r"\$")


def _draw_roofline(axes: Axes, roofline: Roofline | None) -> None:
    assert roofline is not None
    shown_family = first_family(roofline)
    memory, flat = RoofSet(roofline.ceilings).best(MEMORY), _flat_roofs(roofline, shown_family)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP/byte", ylabel="FLOP/s")
    if memory is None or not flat:
        axes.set_title("no ceiling is known", fontsize=9)
        return
    top = max(
        (ceiling.median for ceiling in flat if ceiling.source == MEASURED), default=flat[0].median
    )
    right = _DECADES * top / memory.median
    lines = [
        _draw_line(axes, ceiling, (_LEFT, top / ceiling.median), (_LEFT * ceiling.median, top))
        for ceiling in _slopes(roofline)
        if ceiling.median * _LEFT < top
    ]
    lines += [
        _draw_line(
            axes, ceiling, (ceiling.median / memory.median, right), (ceiling.median, ceiling.median)
        )
        for ceiling in flat
    ]
    marks = [
        _draw_mark(axes, index, point, dim=point.family != shown_family)
        for index, point in enumerate(roofline.points)
        if point.intensity is not None
    ]
    for before, after in roofline.arrows:
        ends = [
            (roofline.points[index].intensity, roofline.points[index].rate)
            for index in (after, before)
        ]
        if all(intensity for intensity, _ in ends):
            axes.annotate("", ends[0], ends[1], arrowprops={"arrowstyle": "->", "alpha": 0.5})
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.set_ylim(top=_HEADROOM * top)
    axes.add_artist(axes.legend(handles=lines, fontsize=6, loc="upper left"))
    if marks:
        axes.legend(handles=marks, fontsize=7, loc="lower right")


def _flat_roofs(roofline: Roofline, shown_family: str) -> list[Ceiling]:
    """The roofs of arithmetic, without those that would lie on another of the same source."""
    roofs: list[Ceiling] = []
    for ceiling in sorted(
        roofline.ceilings, key=lambda other: (other.source == MEASURED, other.median), reverse=True
    ):
        fits = (
            ceiling.roof in (MATRIX, VECTOR)
            and family(ceiling.kind) == shown_family
            and ceiling.steady
        )
        apart = (
            abs(ceiling.median / other.median - 1) > _APART * (ceiling.source == other.source)
            for other in roofs
        )
        if fits and all(apart):
            roofs.append(ceiling)
    return roofs


def _slopes(roofline: Roofline) -> list[Ceiling]:
    """The best measured roof of memory and of the cache, and what other sources say of them."""
    roofs = RoofSet(roofline.ceilings)
    return [
        ceiling
        for ceiling in roofline.ceilings
        if ceiling.roof in (MEMORY, CACHE)
        and ceiling.steady
        and (ceiling.source != MEASURED or ceiling is roofs.best(ceiling.roof))
    ]


def _draw_mark(axes: Axes, index: int, point: Point, *, dim: bool) -> ErrorbarContainer:
    """A point with its interval and its letter."""
    low, high = (abs(point.rate - (end or point.rate)) for end in (point.rate_low, point.rate_high))
    assert point.intensity is not None
    axes.annotate(
        letter_of(index), (point.intensity, point.rate), (5, 5), textcoords="offset points"
    )
    return axes.errorbar(
        point.intensity,
        point.rate,
        yerr=[[low], [high]],
        fmt="o",
        capsize=3,
        alpha=0.4 if dim else 1,
        label=(
            f"{letter_of(index)}  {_text(point.variant)}: {point.bound}, {point.fraction:.0%} of "
            "its roof"
        ),
    )


def _draw_line(
    axes: Axes, ceiling: Ceiling, x: tuple[float, float], y: tuple[float, float]
) -> Line2D:
    """A roof, dimmer and dotted where it was not measured."""
    measured = ceiling.source == MEASURED
    style = ("-" if ceiling.roof != CACHE else "--") if measured else ":"
    (line,) = axes.plot(x, y, style, color="black", alpha=0.9 if measured else 0.4, linewidth=1.2)
    line.set_label(_text(f"{amount(ceiling, ceiling.median)} {ceiling.name}, {ceiling.source}"))
    return line


def _draw_times(axes: Axes, report: RunReport, timed: Sequence[tuple[VariantReport, Time]]) -> None:
    """A bar a variant with its 99 % interval, the baseline on top; speedups with theirs beside the
    bars.
    """
    shortest, longest = (
        min(time.ends[0] for _, time in timed),
        max(time.ends[1] for _, time in timed),
    )
    logarithmic = longest > _LOG_FROM * shortest
    start = shortest / 2 if logarithmic else 0.0
    for place, (variant, time) in enumerate(timed):
        median, (low, high) = time.median, time.ends
        comparison = report.comparison(variant.name)
        colour = _GRAY
        if comparison:
            colour = _COLOURS.get(STYLES[comparison.verdict], _GRAY)
        ends = [[median - low], [high - median]]
        length = median - start
        axes.barh(
            place,
            length,
            _BAR,
            left=start,
            xerr=ends,
            color=colour,
            capsize=3,
            alpha=0.8,
        )
        label = _label(report, variant, median)
        axes.annotate(
            label, (high, place), (4, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.set_yticks(range(len(timed)), [_text(variant.name) for variant, _ in timed])
    margin = max(1.0, (_FEWEST_ROWS - len(timed) + 1) / 2)  # few bars are not giants
    axes.set_ylim(len(timed) - 1 + margin, -margin)
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(start, longest * (longest / start) ** 0.6 if logarithmic else 1.6 * longest)
    _label_times(axes.xaxis)
    axes.set_xlabel(_of_times(report.per, report.method.confidence, logarithmic=logarithmic))


def _label(report: RunReport, variant: VariantReport, median: float) -> str:
    label, comparison = seconds(median), report.comparison(variant.name)
    if comparison and comparison.speedup is not None:
        ends = span(comparison.low, comparison.high)
        label += f"   {times(comparison.speedup)} ({ends}) {shown(comparison).words}"
    if (point := variant.roofline) and point.intensity is None:
        label += (
            f"   {_text(f'{rate(point.rate)}{point.unit}, {point.fraction:.0%} of {point.roof}')}"
        )
    return label
