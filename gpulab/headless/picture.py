"""A run for slides, as a picture by matplotlib: imported only where one is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from io import BytesIO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpulab.core.limits import NAME_LENGTH
from gpulab.core.payloads import CACHE, MATRIX, MEASURED, MEMORY, VECTOR, Ceiling, family
from gpulab.core.text import cut, one_line
from gpulab.core.units import rate, seconds, span, times
from gpulab.draw.chart import letter_of
from gpulab.draw.styles import STYLES
from gpulab.features.roofline.bound import Point, Roofline
from gpulab.features.roofline.ceilings import RoofSet
from gpulab.features.roofline.ceilings_view import amount
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import first_family
from gpulab.report.report import RunReport, Time, VariantReport

_INCHES, _DPI = 6.5, 150
_GRAY = "tab:gray"
_COLOURS = {"green": "tab:green", "red": "tab:red", "cyan": "tab:cyan", "yellow": "tab:olive"}
"""Of the bars of times, by the style of their verdict."""
_LEFT, _DECADES, _HEADROOM = 1e-2, 1e2, 10
_APART = 0.1
"""Roofs nearer to each other than this share are one line."""
_LOG_FROM = 20


def image(report: RunReport, kind: str) -> bytes:
    """The picture of a run as a file of that kind, such as svg, by matplotlib's own defaults on
    every machine.
    """
    file = BytesIO()
    # of glyphs that its font lacks
    with matplotlib.rc_context(), warnings.catch_warnings(action="ignore"):
        matplotlib.rcdefaults()
        picture(report).savefig(file, format=kind)
    return file.getvalue()


def picture(report: RunReport) -> Figure:
    """Whichever of its two halves there is something to see in."""
    roofline = roofline_of(report)
    timed = [
        (variant, time) for variant in report.variants if (time := variant.time_per(report.per))
    ]
    halves: list[Callable[[Axes], None]] = []
    halves += [lambda axes: _draw_roofline(axes, roofline)] if roofline else []
    halves += [lambda axes: _draw_times(axes, report, timed)] if timed else []
    figure = Figure(
        figsize=(_INCHES * max(1, len(halves)), _INCHES * 0.75), dpi=_DPI, layout="constrained"
    )
    device = report.device.name if report.device else ""
    title = report.title.partition(": ")[2] or report.title
    heading = _text(f"{report.scenario}{f': {title}' if title else ''}")
    figure.suptitle(f"{heading}\n{_text(device)}", fontsize=10)
    for number, draw in enumerate(halves, 1):
        draw(figure.add_subplot(1, len(halves), number))
    return figure


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
        axes.barh(place, median - start, left=start, xerr=ends, color=colour, capsize=3, alpha=0.8)
        label = _label(report, variant, median)
        axes.annotate(
            label, (high, place), (4, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.set_yticks(range(len(timed)), [_text(variant.name) for variant, _ in timed])
    axes.invert_yaxis()
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(start, longest * (longest / start) ** 0.6 if logarithmic else 1.6 * longest)
    scale = ", logarithmic" if logarithmic else ""
    axes.set_xlabel(
        f"seconds per {report.per}{scale}: median with its {report.method.confidence:.0%} interval"
    )


def _label(report: RunReport, variant: VariantReport, median: float) -> str:
    label, comparison = seconds(median), report.comparison(variant.name)
    if comparison and comparison.speedup is not None:
        label += (
            f"   {times(comparison.speedup)} ({span(comparison.low, comparison.high)}) "
            f"{comparison.verdict}"
        )
    if (point := variant.roofline) and point.intensity is None:
        label += (
            f"   {_text(f'{rate(point.rate)}{point.unit}, {point.fraction:.0%} of {point.roof}')}"
        )
    return label
