"""Counters over the steps of each variant, one below the other on one axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean

from gpulab.core.units import byte_count, plural, rate, seconds, times
from gpulab.draw.area import Area
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table
from gpulab.draw.canvas import Canvas
from gpulab.draw.curve import draw_curve
from gpulab.features.counters_in_time.events import SampledSteps, Sampling
from gpulab.features.counters_in_time.rows import ROWS
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines

_BESIDE, _WIDEST = 40, 120
"""Cells of the columns beside the charts, and of all at most."""
_QUIET = 1e9
"""B/s below which a chart stays low: samples every 20 us are half of it over PCIe."""


def counters(report: RunReport) -> Block | None:
    """The rows of each variant, what they were checked against, and what is missing; None where no
    counters were asked for.
    """
    sampling: Sampling | None = report.get("counters_in_time")
    if sampling is None:
        return None
    sampled = [each for each in report.variants if each.counters_in_time]
    charts = [Fitted(lambda width: _charts(sampling, sampled, width))] if sampled else []
    notes = [Text(words, "dim") for each in sampled for words in _notes(report, each)]
    if sampling.ratios:
        held = (f"{ROWS[name].label} {times(ratio)}" for name, ratio in sampling.ratios.items())
        words = f"cupti-python {sampling.package}; of a copy it counts: {', '.join(held)}"
        notes.append(Text(f"{words}; shares are unchecked", "dim"))
    missing = [Text(f"counters: {line}", "yellow") for line in lines(sampling.findings)]
    return Group(*charts, *notes, *missing)


def _charts(sampling: Sampling, sampled: Sequence[VariantReport], width: int) -> Iterator[Block]:
    doubtful = {str(each.values.get("counter")) for each in sampling.findings}
    longest = max(variant.counters_in_time.shown_s for variant in sampled)
    cells = max(16, min(width, _WIDEST) - _BESIDE)
    table = columns_table(gap=1)
    table.add_column("counters in time", no_wrap=True)
    table.add_column(f"0{seconds(longest):>{cells - 1}}", no_wrap=True, min_width=cells)
    for head in ("mean", "peak"):
        table.add_column(head, justify="right", no_wrap=True)
    for variant in sampled:
        steps: SampledSteps = variant.counters_in_time
        count = round(steps.shown_s / steps.step_s)
        words = f"{plural(count, 'step')} of {seconds(steps.step_s)}"
        table.add_row(Text(variant.name, "bold"), Text(words, "dim"), "", "")
        own = max(1, round(cells * steps.shown_s / longest))
        for name, values in steps.rows.items():
            row, top = ROWS[name], 1.0
            if row.bytes:
                rows = [each.counters_in_time.rows.get(name, ()) for each in sampled]
                top = max(_QUIET, *(value for each in rows for value in each))
            canvas = Canvas(own, 1)
            shares = [value / top for value in _means(values, 2 * own)]
            draw_curve(Area(canvas, 0, 0, own, 1), shares)
            figures = [
                f"{rate(value)}B/s" if row.bytes else f"{value:.0%}"
                for value in (fmean(values), max(values))
            ]
            label = row.label + "?" * (row.label in doubtful)
            table.add_row(label, canvas.text(), *figures)
    yield table


def _means(values: Sequence[float], count: int) -> list[float]:
    """So many: the means of those that fall together."""
    starts = [place * len(values) // count for place in range(count + 1)]
    return [
        fmean(values[starts[place] : max(starts[place] + 1, starts[place + 1])])
        for place in range(count)
    ]


def _notes(report: RunReport, variant: VariantReport) -> Iterator[str]:
    steps: SampledSteps = variant.counters_in_time
    words = f"{variant.name}: {steps.steps:,} steps, a sample every {seconds(steps.interval_s)}"
    if steps.moved_bytes is not None:
        words += f"; {byte_count(steps.moved_bytes)} of device memory a step"
        known = report.ceilings.ceilings if report.get("ceilings") else ()
        roofs = [each.median for each in known if each.roof == "memory" and each.steady]
        if roofs:
            words += f", {steps.moved_bytes / steps.step_s / max(roofs):.0%} of the measured roof"
    if steps.over_declared is not None:
        words += f", {times(steps.over_declared)} of what it declares"
    yield words
    if (cost := steps.cost) and cost.low is not None and cost.high is not None:
        ends = f"{cost.low:+.1%} to {cost.high:+.1%}"
        yield f"sampling adds {cost.value:+.1%} ({ends}) to {variant.name}, by {cost.n} pairs"
