"""Telemetry: charts over time beside a run, and the table of what each variant did while it ran
alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from gpulab.core.statuses import Stage
from gpulab.core.units import byte_count, rate, seconds, three_digits
from gpulab.draw.area import Area
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.draw.canvas import fit, wide
from gpulab.draw.curve import draw_curve
from gpulab.draw.panel import Panel, Rows, style_of
from gpulab.features.telemetry.events import CLOCK_LETTERS
from gpulab.features.telemetry.fields import FIELDS, PERCENT, RATE_HZ, columns, rows
from gpulab.features.telemetry.result import SoloReport, TelemetryReport
from gpulab.report.live import LiveReport
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence

_SHORTEST_NAME = 8
_HEADS = {
    "time": "time/step",
    "energy": "J/item",
    "clocks": "clocks",
    "bytes_per_s": "B/s, derived",
    "flops_per_s": "FLOP/s, derived",
}
"""Of columns that are no field as it was sampled."""
_SEEMS_BUSY = 75.0


def solo_runs(report: RunReport) -> Block | None:
    """A row a variant: what the device, or on a CPU the host, did while it ran by itself; None
    where none did.
    """
    runs = [(variant.name, variant.solo_run) for variant in report.variants if variant.solo_run]
    runs = [(name, solo) for name, solo in runs if solo.readings]
    if not runs:
        return None
    telemetry = report.telemetry
    fields = ["time", *columns(host=True)]
    if telemetry is not None and telemetry.gpu is not None:
        fields = ["time", *columns(host=False), "clocks"]
        if any(_only_seems_busy(solo) for _, solo in runs):
            fields.insert(1, "busy")
        if "sm" in telemetry.unsupported:
            fields += ("bytes_per_s", "flops_per_s")
    shown = [column for column in fields if any(_cell(solo, column) for _, solo in runs)]
    table = columns_table(gap=1)
    head = f"solo run, {max(solo.seconds for _, solo in runs):.0f} s"
    longest = max(len(name) for name, _ in runs)
    if longest < len(head):
        head = head.replace(", ", "\n")
    table.add_column(
        head, overflow="fold", min_width=min(longest, _SHORTEST_NAME), vertical="bottom"
    )
    for column in shown:
        table.add_column(_head(column), justify="right", no_wrap=True, vertical="bottom")
    for name, solo in runs:
        table.add_row(name, *((_cell(solo, column) or "n/a") for column in shown))
    legend = _clock_legend(
        "".join(solo.clocks for _, solo in runs if solo.clocks not in ("ok", "n/a"))
    )
    return Group(table, Text(legend, "dim")) if legend else table


def _only_seems_busy(solo: SoloReport) -> bool:
    """Return whether some kernel runs nearly all the time, and most of the multiprocessors have
    nothing to do.
    """
    return solo.means.get("busy", 0.0) - solo.means.get("sm", 100.0) > _SEEMS_BUSY


def _clock_legend(letters: str) -> str:
    """Return what the letters of the clock states mean; empty where there are none."""
    meanings = [f"{letter} {name}" for letter, name in CLOCK_LETTERS.items() if letter in letters]
    return f"clocks: {', '.join(meanings)}" if meanings else ""


def clocks_words(telemetry: TelemetryReport) -> str:
    """Return what holds the clocks back now, and whether anything slowed them before."""
    names = ", ".join(name for letter, name in CLOCK_LETTERS.items() if letter in telemetry.clocks)
    held_back = f" ({names})" if names else ""
    slowed = " (slowed before)" if telemetry.slowed else ""
    return f"clocks {telemetry.clocks}{held_back}{slowed}"


def _head(column: str) -> str:
    """The head of a column of the solo runs: label and unit, or the unit alone where it says
    enough.
    """
    if column in _HEADS:
        return _HEADS[column]
    field = FIELDS[column]
    label = f"{field.short}." if field.short else field.label
    return {"%": f"{label} %", "/s": f"{label}/s", "B": label}.get(field.unit, field.unit)


def _cell(solo: SoloReport, column: str) -> str:
    if column == "time":
        return seconds(solo.time_s.value)
    if column == "energy":
        return "" if solo.energy_j is None else f"{solo.energy_j:.3g}"
    if column == "clocks":
        return solo.clocks
    if column in ("bytes_per_s", "flops_per_s"):
        value = solo.bytes_per_s if column == "bytes_per_s" else solo.flops_per_s
        return rate(value) if value else ""
    mean = solo.means.get(column)
    if mean is None:
        return ""
    return byte_count(mean) if column == "rss" else three_digits(mean)


_LABEL, _VALUE = 11, 13
_CHART = _LABEL + _VALUE + 3
"""Where charts begin, behind their values."""
_WITH_CAPTIONS = 3
"""Rows from which on the first says what ran."""
_ONE_A_CELL = 99
"""Cells above which a reading takes a cell, not half of one: charts go back half a minute."""
_CHARTS, _CHART_ROWS = 5, 3
"""Charts that get three rows each before there are more of them."""
_HIGHEST = 6
_PREPARING = (Stage.LOAD, Stage.BUILD, Stage.TUNE, Stage.CALIBRATE, Stage.WARM_UP, Stage.COUNT)
_STATES = ("MHz", "C", "B")
"""Units of what is no activity: a line in the row of its name, not a filled curve."""
_FEWEST_CELLS = 4
_CONTENDED = 0.05
_AVERAGED, _BUSY = 10, 20.0
"""Readings over which other work is averaged, and per cent of all cores from which on it is said.
"""


@dataclass(frozen=True)
class _Column:
    """The readings of a moment, fields that are read less often from the last second; and what went
    on: a stage, or the variant that ran by itself.
    """

    values: Mapping[str, float]
    stage: str
    variant: str


def _heading(run: LiveReport) -> tuple[str, str]:
    telemetry, device = run.report.telemetry, run.report.device
    if telemetry is not None and telemetry.gpu:
        return f"device: {telemetry.gpu}", f"{RATE_HZ} readings a second"
    name = device.name if device else ""
    right = f"{RATE_HZ} readings a second"
    others = [reading.values.get("others_cpu", 0.0) for reading in run.detail.readings[-_AVERAGED:]]
    if others and fmean(others) > _BUSY:
        right = f"others busy here: {fmean(others):.0f} % of all cores"
    return f"machine: {name}".removesuffix(": "), right


def _fields(run: LiveReport) -> Sequence[str]:
    """Those of the device that is sampled: it may be another than the one that the run is on."""
    return rows(host=not (run.report.telemetry and run.report.telemetry.gpu))


def _rows(run: LiveReport, width: int) -> Rows:
    if not run.detail.sampled:
        return Rows(0, 0, 0)
    count = min(_CHARTS, len(rows(host=not run.detail.on_gpu)))
    return Rows(4 if run.detail.on_gpu else 3, count + 1, _CHART_ROWS * count + 1, count)


def _draw(run: LiveReport, area: Area) -> None:
    report = run.report
    if report.telemetry is None:
        area.put(0, 0, _why_no_reading(run))
        return
    cells = max(1, area.width - _CHART)
    columns = _columns(run)
    readings = columns[-cells:] if cells > _ONE_A_CELL else columns[-2 * cells :]
    shown = _stretched(readings, 2 * cells)
    captions = int(area.height >= _WITH_CAPTIONS)
    if captions:
        _draw_captions(run, area.part(0, _CHART, cells, 1), shown)
        area.put(0, 0, *_validity(report))
    height = area.height - captions
    fields = [field for field in _fields(run) if field not in report.telemetry.unsupported]
    fields = fields[: min(height, max(_CHARTS, height // _CHART_ROWS))]
    each = min(_HIGHEST, height // max(1, len(fields)))
    for place, field in enumerate(fields):
        row = captions + place * each
        top = _top(report, field, columns)
        values = [column.values.get(field) for column in shown]
        shares = [None if value is None else value / top for value in values]
        words = row + each // 2
        if FIELDS[field].unit in _STATES:
            draw_curve(area.part(words, _CHART, cells, 1), shares, filled=False)
        else:
            draw_curve(area.part(row, _CHART, cells, each), shares)
        area.put(words, 0, FIELDS[field].label, most=_LABEL)
        if (value := report.telemetry.last.get(field)) is not None:
            text = _value(report, field, value)
            area.put(words, _LABEL + 1 + max(0, _VALUE - len(text)), text, "bold", most=_VALUE)


def _why_no_reading(run: LiveReport) -> str:
    if not run.detail.sampled:
        return "telemetry is off"
    if run.report.progress.awaiting_telemetry:
        return "waiting for the driver"
    return "no reading so far"


def _columns(run: LiveReport) -> list[_Column]:
    """Readings in their order, each with what went on then."""
    stages, columns, at = list(run.detail.stages), [], 0
    stage = variant = ""
    values: dict[str, tuple[float, float]] = {}
    for reading in run.detail.readings:
        while at < len(stages) and stages[at].t <= reading.t:
            stage = stages[at].stage
            variant = ""
            if stage == Stage.SOLO_RUN:
                variant = stages[at].variant or ""
            if stage in _PREPARING:
                stage = Stage.CHECK
            at += 1
        values |= {field: (reading.t, value) for field, value in reading.values.items()}
        values = {field: known for field, known in values.items() if reading.t - known[0] <= 1.0}
        known = {field: value for field, (_, value) in values.items()}
        columns.append(_Column(known, stage, variant))
    return columns


def _stretched(columns: Sequence[_Column], count: int) -> Sequence[_Column]:
    """Return so many: each is repeated until the few readings of a young run fill the width."""
    if not columns:
        return columns
    return [columns[place * len(columns) // count] for place in range(count)]


def _draw_captions(run: LiveReport, area: Area, columns: Sequence[_Column]) -> None:
    """The stages, and the names of what runs alone, over their stretches."""
    variants = [variant.name for variant in run.variants]
    stretches = groupby(enumerate(columns), key=lambda place: (place[1].stage, place[1].variant))
    for (stage, variant), places in stretches:
        numbers = [place for place, _ in places]
        start = (numbers[0] + 1) // 2
        room = numbers[-1] // 2 + 1 - start
        style = "bright_black"
        if variant:
            style = f"bold {style_of(variant, run.report.baseline)}"
        words = f"├{_short(variant, room - 1, variants) or stage}"
        if room < _FEWEST_CELLS or wide(words) > room:
            words = "├"
        area.put(0, start, (words + "─" * (room - wide(words)))[:room], style)


def _short(name: str, most: int, others: Sequence[str]) -> str:
    """Return the name in at most so many cells: its start, or its end where others start so."""
    start = fit(name, most)
    if start == name or sum(fit(other, most) == start for other in others) < 2:
        return start
    return f"…{name[-most + 1 :]}"


def _top(report: RunReport, field: str, columns: Sequence[_Column]) -> float:
    """The value at which a chart is full: the limit where there is one."""
    telemetry: TelemetryReport = report.telemetry
    if FIELDS[field].unit == "%":
        return PERCENT
    if limit := telemetry.limits.get(field):
        return limit
    if field == "temperature":
        return 100.0
    return max((column.values.get(field, 0.0) for column in columns), default=0.0) or 1.0


def _value(report: RunReport, field: str, value: float) -> str:
    assert report.telemetry is not None
    limit, unit = report.telemetry.limits.get(field), FIELDS[field].unit
    if unit == "B":
        return byte_count(value)
    of = f"/{limit:.0f}" if limit and unit != "%" else ""
    return f"{value:.0f}{of} {unit}"


def _validity(report: RunReport) -> tuple[str, str]:
    """Return what makes the readings less than they seem; else that nothing does."""
    telemetry = report.telemetry
    assert telemetry is not None
    if telemetry.lost:
        return sentence(telemetry.lost), "bold red"
    if telemetry.stale:
        return f"stale: nothing for {telemetry.age_s or 0:.0f} s", "bold red"
    if telemetry.gpu:
        return clocks_words(telemetry), "green" if telemetry.clocks == "ok" else "yellow"
    contention = [
        variant.contention for variant in report.variants if variant.contention is not None
    ]
    if report.get("program"):
        return "", ""
    if not contention:
        return "no block was timed so far", ""
    words = f"off the CPU up to {max(contention):.0%}"
    return words, "yellow" if max(contention) >= _CONTENDED else ""


_ABOUT = (
    "The device over the last seconds, with the name of the variant that ran. While variants are "
    "measured they take turns; afterwards each runs alone, and a reading is one variant's own."
)
CHARTS = Panel("device", _heading, _rows, _draw, _ABOUT)
