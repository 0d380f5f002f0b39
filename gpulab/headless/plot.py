"""`--plot`: a run for slides, by matplotlib: its roofline, and the times of its variants with their intervals."""

from __future__ import annotations

from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.model.accounting import chart
from gpulab.model.ceilings import CACHE, MATRIX, MEASURED, MEMORY, VECTOR, Ceiling, Roofs, family
from gpulab.model.result import RunResult, VariantResult
from gpulab.model.roofline import Roofline
from gpulab.run.request import UsageError
from gpulab.views.ceilings import amount
from gpulab.views.text import seconds, span, times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".png", ".svg", ".pdf")
_INCHES, _DPI = 6.5, 150
_COLOURS = {"faster": "tab:green", "slower": "tab:red", "same": "tab:cyan", "inconclusive": "tab:olive"}
_LEFT, _DECADES = 1e-2, 1e2


def check_plot(target: Path) -> None:
    """UsageError where the picture could not be made: found before anything is measured."""
    if target.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {target}: the name ends in {', '.join(KINDS)}")
    if util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'gpulab[plot]'")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab"):
            pass
    except OSError as error:
        raise UsageError(f"--plot {target}: {error.strerror}") from None


def plot(run: RunResult, target: Path) -> None:
    """Write the picture of one run: whichever of its two halves there is something to see in."""
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
    figure.savefig(target)


def _roofline(axes: Axes, run: RunResult, of: Roofline | None) -> None:
    assert of is not None
    of_type = family(of.points[0].dtype) if of.points else "fp32"
    roofs = Roofs(of.ceilings)
    flat = [one for one in of.ceilings if one.roof in (MATRIX, VECTOR) and family(one.kind) == of_type and one.steady]
    top = max((one.best for one in flat), default=0.0)
    memory = roofs.best(MEMORY)
    axes.set(xscale="log", yscale="log", xlabel="arithmetic intensity, FLOP/byte", ylabel="FLOP/s")
    if memory is None or not top:
        axes.set_title("no ceiling is known", fontsize=9)
        return
    right = _DECADES * top / memory.best
    for one in (each for each in of.ceilings if each.roof in (MEMORY, CACHE) and each.steady):
        if one.source == MEASURED and one is not roofs.best(one.roof):
            continue
        _line(axes, one, (_LEFT, top / one.best), (_LEFT * one.best, top))
    for one in flat:
        _line(axes, one, (one.best / memory.best, right), (one.best, one.best))
    for index, point in enumerate(of.points):
        if point.intensity is None:
            continue
        dim = point.family != of_type
        low, high = (abs(point.rate - (end or point.rate)) for end in (point.rate_low, point.rate_high))
        label = f"{chr(ord('A') + index % 26)}  {point.variant}: {point.bound}, {point.fraction:.0%}"
        axes.errorbar(
            point.intensity, point.rate, yerr=[[low], [high]], fmt="o", capsize=3, label=label, alpha=0.4 if dim else 1
        )
        axes.annotate(chr(ord("A") + index % 26), (point.intensity, point.rate), (5, 5), textcoords="offset points")
    for before, after in of.arrows:
        ends = [(of.points[end].intensity, of.points[end].rate) for end in (after, before)]
        if all(intensity for intensity, _ in ends):
            axes.annotate("", ends[0], ends[1], arrowprops={"arrowstyle": "->", "alpha": 0.5})
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend(fontsize=7, loc="lower right")


def _line(axes: Axes, one: Ceiling, x: tuple[float, float], y: tuple[float, float]) -> None:
    """A roof, dimmer where it was not measured, with its value at its end."""
    measured = one.source == MEASURED
    style = ("-" if one.roof != CACHE else "--") if measured else ":"
    axes.plot(x, y, style, color="black", alpha=0.9 if measured else 0.4, linewidth=1.2)
    flat = y[0] == y[1]
    told = f"{one.name} {amount(one, one.best)}, {one.source}"
    place, anchor = ((x[1], y[1]), "right") if flat else ((x[0], y[0]), "left")
    axes.annotate(told, place, (0, 3), textcoords="offset points", ha=anchor, fontsize=6, alpha=1 if measured else 0.5)


def _times(axes: Axes, run: RunResult, of: Roofline | None) -> None:
    """A bar a variant with its 99 % interval, the baseline on top; speedups with theirs beside the bars."""
    shown = [one for one in run.variants if one.time_s]
    per_item = run.per == "item"
    verdicts = {one.variant: one for one in reversed(run.comparisons)}
    for place, one in enumerate(shown):
        middle, low, high = _interval(one, per_item=per_item)
        compared = verdicts.get(one.name)
        colour = _COLOURS.get(compared.verdict, "tab:gray") if compared else "tab:gray"
        axes.barh(place, middle, xerr=[[middle - low], [high - middle]], color=colour, capsize=3, alpha=0.8)
        told = seconds(middle)
        if compared and compared.speedup is not None:
            told += f"   {times(compared.speedup)} ({span(compared.low, compared.high)}) {compared.verdict}"
        axes.annotate(told, (high, place), (4, 0), textcoords="offset points", va="center", fontsize=7)
    axes.set_yticks(range(len(shown)), [one.name for one in shown])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.6 * max(_interval(one, per_item=per_item)[2] for one in shown))
    axes.set_xlabel(f"seconds per {run.per}, median with its {run.method.confidence:.0%} interval")


def _interval(one: VariantResult, *, per_item: bool) -> tuple[float, float, float]:
    assert one.time_s is not None
    items = (one.items or 1.0) if per_item else 1.0
    middle = one.time_s.median
    low, high = (middle if end is None else end for end in (one.time_s.low, one.time_s.high))
    return middle / items, low / items, high / items
