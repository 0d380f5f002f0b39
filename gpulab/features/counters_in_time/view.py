"""Counters over the steps of each variant, one below the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from gpulab.core.units import byte_count, plural, rate, seconds, times
from gpulab.draw.area import Area
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table
from gpulab.draw.canvas import Canvas
from gpulab.draw.curve import draw_curve
from gpulab.features.counters_in_time.events import SampledSteps, Sampling
from gpulab.features.counters_in_time.rows import ROWS, Row
from gpulab.report.report import RunReport
from gpulab.report.sentences import lines

_BESIDE, _WIDEST = 46, 120
"""Cells of the columns beside the charts, and of all at most."""
_SMALL = 0.01
"""Of full scale: what stays below it is not drawn."""
_ONE_AXIS = 4
"""How many times longer one may be than another on the same axis."""


def counters(report: RunReport) -> Block | None:
    """The rows of each variant, what they were checked against, and what is missing; None where no
    counters were asked for.
    """
    sampling: Sampling | None = report.get("counters_in_time")
    if sampling is None:
        return None
    return Group(
        Fitted(lambda width: _charts(report, sampling, width)),
        *(Text(words, "dim") for words in _checked(sampling)),
        *(Text(f"counters: {line}", "yellow") for line in lines(sampling.findings)),
    )


def _charts(report: RunReport, sampling: Sampling, width: int) -> Iterator[Block]:
    sampled = [each for each in report.variants if each.counters_in_time]
    lengths = [each.counters_in_time.shown_s for each in sampled]
    known = report.ceilings.ceilings if report.get("ceilings") else ()
    roof = max((each.median for each in known if each.roof == "memory" and each.steady), default=0)
    doubtful = [each.values.get("counter") for each in sampling.findings]
    cells = max(16, min(width, _WIDEST) - _BESIDE)
    for variant in sampled:
        steps: SampledSteps = variant.counters_in_time
        heading = f"counters in time of {variant.name}: one step as sampled {seconds(steps.step_s)}"
        if variant.time_s:
            heading += f", median when measured {seconds(variant.time_s.value)}"
        yield Text(heading, "bold")
        end_s = max(lengths)
        if end_s > _ONE_AXIS * min(lengths):
            end_s = steps.shown_s
        table = columns_table(gap=1)
        table.add_column("", no_wrap=True, min_width=11)
        table.add_column(f"0{seconds(end_s):>{cells - 1}}", no_wrap=True, min_width=cells)
        for head in ("mean", "peak", "full scale"):
            table.add_column(head, justify="right", no_wrap=True, min_width=9)
        small = []
        for name, values in steps.rows.items():
            row, top = ROWS[name], 1.0
            if row.bytes:
                top = max(max(each.counters_in_time.rows.get(name, [0])) for each in sampled)
            if roof and row.copied == "inside":
                top = roof
            if max(values) <= _SMALL * top:
                peak = f"at most {_figure(row, max(values))}" if any(values) else "0"
                small.append(f"{row.label} {peak}")
            else:
                chart = _chart(values, top, round(cells * steps.shown_s / end_s))
                label = row.label + "?" * (row.label in doubtful)
                figures = (_figure(row, value) for value in (fmean(values), max(values), top))
                table.add_row(label, chart, *figures)
        yield table
        if small:
            yield Text(f"below 1 % throughout: {', '.join(small)}", "dim")
        yield Text("; ".join(_notes(variant.name, steps, roof)), "dim")


def _chart(values: Sequence[float], top: float, cells: int) -> Text:
    """Two values a cell: means of those that fall together; what is 0 is left free."""
    canvas, count = Canvas(cells, 1), 2 * cells
    starts = [place * len(values) // count for place in range(count + 1)]
    parts = [values[low : max(low + 1, high)] for low, high in pairwise(starts)]
    draw_curve(Area(canvas, 0, 0, cells, 1), [fmean(part) / top or None for part in parts])
    return canvas.text()


def _figure(row: Row, value: float) -> str:
    """With two digits at least, however small."""
    if row.bytes:
        return f"{rate(value)}B/s"
    return f"{float(f'{100 * value:.2g}'):g} %"


def _notes(name: str, steps: SampledSteps, roof: float) -> Iterator[str]:
    shown = round(steps.shown_s / steps.step_s)
    yield f"{shown:,} of {plural(steps.steps, 'step')}, a sample every {seconds(steps.interval_s)}"
    if steps.moved_bytes is not None:
        words = f"{byte_count(steps.moved_bytes)} of device memory a step"
        if roof:
            words += f", {steps.moved_bytes / steps.step_s / roof:.0%} of the measured roof"
        if steps.over_declared is not None:
            words += f", {times(steps.over_declared)} of what it declares"
        yield words
    if cost := steps.cost:
        low, high = cost.ends
        ends = f"{low:+.1%} to {high:+.1%}" if cost.has_interval else "too few for an interval"
        yield f"sampling adds {cost.value:+.1%} to {name}, by {cost.n} pairs ({ends})"


def _checked(sampling: Sampling) -> Iterator[str]:
    held = []
    for name, ratio in sampling.ratios.items():
        if ROWS[name].copied:
            idle = sampling.idle.get(name)
            beside = f" ({rate(idle)}B/s with an idle link)" if idle else ""
            held.append(f"{ROWS[name].label} {times(ratio)}{beside}")
    if held:
        words = f"cupti-python {sampling.package}; of a copy it counts: {', '.join(held)}"
        yield f"{words}; not checked: L2 sectors, shares"
