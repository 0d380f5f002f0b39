"""Several runs of the same: each comparison, or each function's time, with its interval over
runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.units import duration, interval, plural, seconds, span, times
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.draw.styles import STYLES
from gpulab.features.repeats.report import RepeatReport
from gpulab.stats.statistics import FEWEST
from gpulab.stats.verdicts import shown

_MOST_SHOWN = 12
"""Of the values of single runs."""
_LONG_S = 3600.0
"""Runs that take as long together have seen the machine in more than one state."""


def repeats_view(entries: Sequence[RepeatReport]) -> Block:
    """A row an entry: the median over runs, its interval, or, of too few runs, the range."""
    if not entries:
        return Text("no run compared anything: there is no interval over runs", "bold")
    most = max(entry.runs for entry in entries)
    fewest = min(entry.runs for entry in entries)
    span_s = max((entry.span_s for entry in entries if entry.span_s), default=None)
    within = f" in {duration(span_s)}" if span_s else ""
    head = f"over {plural(most, 'run')}{within}, each in processes of its own"
    parts: list[Block] = ["", Text(head, "bold"), "", _table(entries, fewest, most), ""]
    for entry in entries:
        values = [times(speedup) for speedup in entry.speedups]
        if not values:
            values = [seconds(time_s) for time_s in entry.times_s]
        text = f"{entry.variant}: {', '.join(values[:_MOST_SHOWN])}"
        if len(values) > _MOST_SHOWN:
            text += f", and {len(values) - _MOST_SHOWN} more"
        parts.append(Text(text, "dim"))
    if fewest < FEWEST:
        note = f"a 99 % interval over runs needs {FEWEST}: of fewer their range is shown"
        parts.append(Text(note, "yellow"))
    if span_s is not None and span_s < _LONG_S:
        note = "a drift of the machine over hours is not in it"
        parts.append(Text(note, "dim"))
    return Group(*parts)


def _table(entries: Sequence[RepeatReport], fewest: int, most: int) -> Table:
    several = len({(entry.scenario, *entry.params.items()) for entry in entries}) > 1
    compared = any(entry.against is not None for entry in entries)
    mixed = fewest < FEWEST <= most
    interval = "99 % interval" if most >= FEWEST else "range"
    if mixed:
        interval = "99 % interval, or range"
    table = columns_table()
    if several:
        table.add_column("scenario", overflow="fold")
    table.add_column("variant", overflow="fold")
    for head in ("runs", "speedup" if compared else "time/step", interval):
        table.add_column(head, justify="right", overflow="fold")
    if compared:
        table.add_column("verdict", overflow="fold")
    for entry in entries:
        cells: list[Block] = [entry.scenario] if several else []
        cells += [entry.variant, str(entry.runs), _median(entry)]
        cells.append(f"{'range ' * (mixed and entry.runs < FEWEST)}{_range_words(entry)}")
        if entry.verdict:
            cells.append(Text(shown(entry).words, STYLES[entry.verdict]))
        table.add_row(*cells)
    return table


def _median(entry: RepeatReport) -> str:
    if entry.against is not None:
        return times(entry.speedup)
    if entry.time_s is None:
        return seconds(None)
    return seconds(entry.time_s.value)


def _range_words(entry: RepeatReport) -> str:
    """The interval; of too few runs the range."""
    if entry.against is not None:
        return interval(entry.speedup) or span(min(entry.speedups), max(entry.speedups))
    if entry.time_s and entry.time_s.low is not None and entry.time_s.high is not None:
        return f"{seconds(entry.time_s.low)} to {seconds(entry.time_s.high)}"
    return f"{seconds(min(entry.times_s))} to {seconds(max(entry.times_s))}"
