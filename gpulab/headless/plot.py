"""`--plot`: a run for slides, by matplotlib: its roofline, and the times of its variants with their intervals."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.model.accounting import chart
from gpulab.model.ceilings import CACHE, MATRIX, MEASURED, MEMORY, VECTOR, Ceiling, Roofs, family
from gpulab.model.result import RunResult, VariantResult
from gpulab.model.roofline import Point, Roofline
from gpulab.run.request import UsageError
from gpulab.views.ceilings import amount
from gpulab.views.roofline.plot import letter
from gpulab.views.roofline.view import first_family
from gpulab.views.text import rate, seconds, span, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

KINDS = (".png", ".svg", ".pdf")
_INCHES, _DPI = 6.5, 150
_COLOURS = {"faster": "tab:green", "slower": "tab:red", "same": "tab:cyan", "inconclusive": "tab:olive"}
_LEFT, _DECADES, _HEADROOM = 1e-2, 1e2, 10
_APART = 0.1
"""Roofs nearer to each other than this share are one line."""
_LOG_FROM = 20


def check_plot(target: Path) -> None:
    """UsageError where the picture could not be made: found before anything is measured."""
    if target.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {target}: the name ends in {', '.join(KINDS)}")
    if util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'gpulab[plot]'")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--plot {target}: {error.strerror}") from None
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UsageError(f"--plot {target}: it cannot be written")


def plot(run: RunResult, target: Path) -> None:
    """Write the picture of one run."""
    picture(run).savefig(target)


def picture(run: RunResult) -> Figure:
    """Whichever of its two halves there is something to see in."""
    from matplotlib.figure import Figure

    of = chart(run)
    timed = [one for one in run.variants if one.time_s]
    halves = [half for half, there in ((_roofline, of), (_times, timed)) if there]
    figure = Figure(figsize=(_INCHES * max(1, len(halves)), _INCHES * 0.75), dpi=_DPI, layout="constrained")
    device = f"{run.device.name}" if run.device else ""
    figure.suptitle(f"{run.scenario}: {run.title.partition(': ')[2] or run.title}\n{device}", fontsize=10)
    for number, half in enumerate(halves):
        axes = figure.add_subplot(1, len(halves), number + 1)
        half(axes, run, of)
    return figure


def _roofline(axes: Axes, run: RunResult, of: Roofline | None) -> None:
    assert of is not None
    of_type = first_family(of)
    memory, flat = Roofs(of.ceilings).best(MEMORY), _flat(of, of_type)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP/byte", ylabel="FLOP/s")
    if memory is None or not flat:
        axes.set_title("no ceiling is known", fontsize=9)
        return
    top = max((one.best for one in flat if one.source == MEASURED), default=flat[0].best)
    right = _DECADES * top / memory.best
    lines = [
        _line(axes, one, (_LEFT, top / one.best), (_LEFT * one.best, top))
        for one in _slopes(of)
        if one.best * _LEFT < top
    ]
    lines += [_line(axes, one, (one.best / memory.best, right), (one.best, one.best)) for one in flat]
    marks = [
        _mark(axes, index, point, dim=point.family != of_type)
        for index, point in enumerate(of.points)
        if point.intensity is not None
    ]
    for before, after in of.arrows:
        ends = [(of.points[end].intensity, of.points[end].rate) for end in (after, before)]
        if all(intensity for intensity, _ in ends):
            axes.annotate("", ends[0], ends[1], arrowprops={"arrowstyle": "->", "alpha": 0.5})
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.set_ylim(top=_HEADROOM * top)
    axes.add_artist(axes.legend(handles=lines, fontsize=6, loc="upper left"))
    if marks:
        axes.legend(handles=marks, fontsize=7, loc="lower right")


def _flat(of: Roofline, of_type: str) -> list[Ceiling]:
    """The roofs of arithmetic, without those that would lie on another of the same source."""
    found: list[Ceiling] = []
    for one in sorted(of.ceilings, key=lambda one: (one.source == MEASURED, one.best), reverse=True):
        of_this = one.roof in (MATRIX, VECTOR) and family(one.kind) == of_type and one.steady
        apart = (abs(one.best / other.best - 1) > _APART * (one.source == other.source) for other in found)
        if of_this and all(apart):
            found.append(one)
    return found


def _slopes(of: Roofline) -> list[Ceiling]:
    """The best measured roof of memory and of the cache, and what other sources say of them."""
    roofs = Roofs(of.ceilings)
    return [
        one
        for one in of.ceilings
        if one.roof in (MEMORY, CACHE) and one.steady and (one.source != MEASURED or one is roofs.best(one.roof))
    ]


def _mark(axes: Axes, index: int, point: Point, *, dim: bool) -> ErrorbarContainer:
    """A point with its interval and its letter."""
    low, high = (abs(point.rate - (end or point.rate)) for end in (point.rate_low, point.rate_high))
    assert point.intensity is not None
    axes.annotate(letter(index), (point.intensity, point.rate), (5, 5), textcoords="offset points")
    return axes.errorbar(
        point.intensity,
        point.rate,
        yerr=[[low], [high]],
        fmt="o",
        capsize=3,
        alpha=0.4 if dim else 1,
        label=f"{letter(index)}  {point.variant}: {point.bound}, {point.fraction:.0%} of its roof",
    )


def _line(axes: Axes, one: Ceiling, x: tuple[float, float], y: tuple[float, float]) -> Line2D:
    """A roof, dimmer and dotted where it was not measured."""
    measured = one.source == MEASURED
    style = ("-" if one.roof != CACHE else "--") if measured else ":"
    (found,) = axes.plot(x, y, style, color="black", alpha=0.9 if measured else 0.4, linewidth=1.2)
    found.set_label(f"{amount(one, one.best)} {one.name}, {one.source}")
    return found


def _times(axes: Axes, run: RunResult, of: Roofline | None) -> None:
    """A bar a variant with its 99 % interval, the baseline on top; speedups with theirs beside the bars."""
    shown = [one for one in run.variants if one.time_s]
    intervals = [_interval(one, per_item=run.per == "item") for one in shown]
    verdicts = {one.variant: one for one in reversed(run.comparisons)}
    longest, shortest = max(high for _, _, high in intervals), min(low for _, low, _ in intervals)
    logarithmic = longest > _LOG_FROM * shortest
    start = shortest / 2 if logarithmic else 0.0
    for place, (one, (middle, low, high)) in enumerate(zip(shown, intervals, strict=True)):
        compared = verdicts.get(one.name)
        colour = _COLOURS.get(compared.verdict, "tab:gray") if compared else "tab:gray"
        ends = [[middle - low], [high - middle]]
        axes.barh(place, middle - start, left=start, xerr=ends, color=colour, capsize=3, alpha=0.8)
        told = seconds(middle)
        if compared and compared.speedup is not None:
            told += f"   {times(compared.speedup)} ({span(compared.low, compared.high)}) {compared.verdict}"
        if (point := one.roofline) and point.intensity is None:
            told += f"   {rate(point.rate)}{point.unit}, {point.fraction:.0%} of {point.roof}"
        axes.annotate(told, (high, place), (4, 0), textcoords="offset points", va="center", fontsize=7)
    axes.set_yticks(range(len(shown)), [one.name for one in shown])
    axes.invert_yaxis()
    if logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(start, longest * (longest / start) ** 0.6 if logarithmic else 1.6 * longest)
    scale = ", logarithmic" if logarithmic else ""
    axes.set_xlabel(f"seconds per {run.per}{scale}: median with its {run.method.confidence:.0%} interval")


def _interval(one: VariantResult, *, per_item: bool) -> tuple[float, float, float]:
    assert one.time_s is not None
    items = (one.items or 1.0) if per_item else 1.0
    middle = one.time_s.median
    low, high = (middle if end is None else end for end in (one.time_s.low, one.time_s.high))
    return middle / items, low / items, high / items
