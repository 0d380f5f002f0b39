"""What a run is drawn as: its times, its roofline, and the curve of a sweep."""

from __future__ import annotations

from gpulab.core.units import seconds, with_interval
from gpulab.draw.axis import tick_seconds
from gpulab.draw.figure import Bar, Figure, Scale
from gpulab.draw.styles import STYLES
from gpulab.features.roofline.figure import roofline_figure
from gpulab.features.roofline.report import roofline_of
from gpulab.report.report import RunReport
from gpulab.stats.verdicts import shown


def figures_of(report: RunReport) -> list[Figure]:
    """The times of its variants, and their roofline, as far as there are any."""
    roofline = roofline_of(report)
    drawn = [times_figure(report), roofline_figure(roofline) if roofline else None]
    return [figure for figure in drawn if figure is not None]


def times_figure(report: RunReport) -> Figure | None:
    """A bar a variant with its interval; speedups with theirs as words. None without times."""
    if not report.timed:
        return None
    bars = []
    for variant, time in report.timed:
        words = seconds(time.value)
        comparison = report.comparison(variant.name)
        style = ""
        if comparison is not None and comparison.speedup is not None:
            words += f"  {with_interval(comparison.speedup)} {shown(comparison).words}"
            style = STYLES[comparison.verdict]
        low, high = time.ends
        bars.append(Bar(variant.name, time.value, low, high, words, style))
    longest = max(each.high for each in bars)
    name = f"time per {report.per}, median and {report.method.confidence:.0%} interval"
    x = Scale(name, 0.0, longest, tick_seconds, logarithmic=False)
    return Figure(f"time per {report.per}", x, bars=bars)
