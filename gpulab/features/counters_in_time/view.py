"""Counters over the steps of each variant, one below the other on one axis of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from gpulab.core.units import byte_count, percent_of_roof, plural, rate, seconds, times
from gpulab.draw.area import Area
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table
from gpulab.draw.canvas import Canvas
from gpulab.draw.curve import draw_curve
from gpulab.features.counters_in_time.result import CountersReport, SampledSteps
from gpulab.features.counters_in_time.rows import DRAM, ROWS
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines

_BESIDE, _WIDEST = 40, 120
"""Cells of the columns beside the charts, and of all at most."""
_BELIEVED = 0.1
_QUIET = 1e9
"""B/s over PCIe below which a chart stays low: samples every 20 us are a stream of half of it."""


def counters(report: RunReport) -> Block | None:
    """The rows of each variant, what they were checked against, and what is missing; None where no
    counters were asked for.
    """
    run: CountersReport | None = report.get("counters_in_time")
    if run is None:
        return None
    sampled = [each for each in report.variants if each.counters_in_time]
    notes = [Text(line, "yellow") for line in lines(run.findings)]
    if not sampled:
        return Group(Text("counters in time", "bold"), *notes)
    drawn = Fitted(lambda width: _charts(run, sampled, width))
    return Group(drawn, *(Text(note, "dim") for note in _notes(run, sampled)), *notes)


def _charts(run: CountersReport, sampled: Sequence[VariantReport], width: int) -> Iterator[Block]:
    longest = max(variant.counters_in_time.shown_s for variant in sampled)
    cells = max(16, min(width, _WIDEST) - _BESIDE)
    tops = _tops(run, [variant.counters_in_time for variant in sampled])
    table = columns_table(gap=1)
    table.add_column("counters in time", no_wrap=True, max_width=16)
    table.add_column(f"0{seconds(longest):>{cells - 1}}", no_wrap=True, min_width=cells)
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("peak", justify="right", no_wrap=True)
    for variant in sampled:
        steps: SampledSteps = variant.counters_in_time
        shown = plural(max(1, round(steps.shown_s / steps.step_s)), "step")
        words = f"{shown} of {seconds(steps.step_s)}"
        table.add_row(Text(variant.name, "bold"), Text(words, "dim"), "", "")
        own = max(1, round(cells * steps.shown_s / longest))
        for name, values in steps.rows.items():
            canvas = Canvas(own, 1)
            shares = [value / tops[name] for value in _stretched(values, 2 * own)]
            draw_curve(Area(canvas, 0, 0, own, 1), shares)
            unsure = "?" * (abs(run.ratios.get(name, 1.0) - 1) > _BELIEVED)
            figures = (_value(name, fmean(values)), _value(name, max(values)))
            table.add_row(f"{ROWS[name].label}{unsure}", canvas.text(), *figures)
    yield table


def _tops(run: CountersReport, sampled: Sequence[SampledSteps]) -> dict[str, float]:
    """At which value the charts of a row are full: one for all variants."""
    tops = {}
    for name, row in ROWS.items():
        highest = max((max(each.rows.get(name, [0.0])) for each in sampled), default=0.0)
        tops[name] = max(highest, _QUIET) if row.bytes else 1.0
    both = max(run.memory_bytes_per_s or 0.0, *(tops[name] for name in DRAM))
    return tops | dict.fromkeys(DRAM, both)


def _stretched(values: Sequence[float], count: int) -> list[float]:
    """So many: the means of those that fall together."""
    edges = [place * len(values) / count for place in range(count + 1)]
    return [
        fmean(values[int(left) : max(int(left) + 1, int(right))]) for left, right in pairwise(edges)
    ]


def _value(name: str, value: float) -> str:
    return f"{rate(value)}B/s" if ROWS[name].bytes else f"{value:.0%}"


def _notes(run: CountersReport, sampled: Sequence[VariantReport]) -> Iterator[str]:
    for variant in sampled:
        steps: SampledSteps = variant.counters_in_time
        if not all(name in steps.per_step for name in DRAM):
            continue
        moved = sum(steps.per_step[name] for name in DRAM)
        words = f"{variant.name}: {byte_count(moved)} of device memory a step"
        if steps.over_declared is not None:
            words += f", {times(steps.over_declared)} of what it declares"
        if run.memory_bytes_per_s:
            share = moved / steps.step_s / run.memory_bytes_per_s
            words += f"; {percent_of_roof(share)} % of the measured roof"
        yield words
    intervals = sorted({variant.counters_in_time.interval_s for variant in sampled})
    every = " or ".join(map(seconds, intervals))
    yield f"a sample every {every}, by cupti-python {run.package}, after the measurement"
    if run.ratios:
        held = (f"{ROWS[name].label} {times(ratio)}" for name, ratio in run.ratios.items())
        yield f"counted of copies made here, over their size: {', '.join(held)}; shares unchecked"
    if run.cost:
        ends = ""
        if run.cost.low is not None and run.cost.high is not None:
            ends = f" ({run.cost.low:+.1%} to {run.cost.high:+.1%})"
        yield f"sampling adds {run.cost.value:+.1%}{ends} to these steps, by {run.cost.n} pairs"
