"""The device, or on a CPU the host, over time: a row a field, with the name of what runs alone above them.

A chart is written from left to right and then over itself, as an oscilloscope does: only what is new has to be sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpulab.protocol.statuses import Stage
from gpulab.protocol.telemetry_fields import FIELDS, PERCENT, RATE_HZ
from gpulab.report.report import RunReport
from gpulab.views.findings import sentence
from gpulab.views.live.area import Area
from gpulab.views.live.panel import LiveRun, Panel, Rows
from gpulab.views.telemetry import bars, clocks_words
from gpulab.views.text import byte_count

_GPU = ("sm", "dram", "power", "occupancy", "tensor", "sm_clock", "memory_used", "temperature")
_HOST = ("worker_cpu", "machine_cpu", "rss")
_HOTTEST_C = 100.0
_LABEL, _VALUE = 11, 13
_CHART = _LABEL + _VALUE + 3
"""Where charts begin, behind their values: of a row that grows to the right only what is left of its end is sent."""
_CONTENDED = 0.05


@dataclass(frozen=True)
class _Column:
    """What was read by then, fields that are read less often from the last second; and what ran by itself meanwhile."""

    values: Mapping[str, float]
    variant: str


def _heading(run: LiveRun) -> tuple[str, str]:
    telemetry, device = run.report.telemetry, run.report.device
    if telemetry is not None and telemetry.gpu:
        return f"device: {telemetry.gpu}", f"{RATE_HZ} readings a second"
    name = device.name if device else ""
    return f"machine: {name}".removesuffix(": "), f"{RATE_HZ} readings a second"


def _fields(run: LiveRun) -> Sequence[str]:
    """Those of the device that is sampled: it may be another than the one that the run is on."""
    return _GPU if run.report.telemetry and run.report.telemetry.gpu else _HOST


def _rows(run: LiveRun, width: int) -> Rows:
    return Rows(3, len(_GPU if run.detail.on_gpu else _HOST) + 2) if run.detail.sampled else Rows(1, 1)


def _draw(run: LiveRun, area: Area) -> None:
    report = run.report
    if report.telemetry is None:
        area.put(0, 0, "no reading so far" if run.detail.sampled else "telemetry is off")
        return
    cells = area.width - _CHART
    columns = _columns(run)
    last = len(columns)
    first = max(0, last - cells + 1)
    places = [(place % cells, columns[place]) for place in range(first, last)]
    captions = area.height > 2
    if captions:
        _draw_captions(area.part(0, _CHART, cells, 1), places)
    fields = [field for field in _fields(run) if field not in report.telemetry.unsupported]
    words = area.height - captions - 1 if area.height > 2 + captions else area.height - captions
    for row, field in enumerate(fields[:words], int(captions)):
        top = _top(report, field, columns)
        area.put(row, 0, FIELDS[field].label, most=_LABEL)
        for cell, column in places:
            if (value := column.values.get(field)) is not None:
                mark = bars([value], top * 1.001, area.glyphs)
                area.put(row, _CHART + cell, mark, "cyan" if column.variant else "")
        if (value := report.telemetry.last.get(field)) is not None:
            text = _value(report, field, value)
            area.put(row, _LABEL + 1 + max(0, _VALUE - len(text)), text, most=_VALUE)
    if words < area.height - captions:
        text, style = _validity(report)
        area.put(area.height - 1, 0, text, style)


def _columns(run: LiveRun) -> list[_Column]:
    """Readings in their order, each with the variant that ran by itself then."""
    stages, columns, at, alone = list(run.detail.stages), [], 0, ""
    values: dict[str, tuple[float, float]] = {}
    for reading in run.detail.readings:
        while at < len(stages) and stages[at].t <= reading.t:
            alone = (stages[at].variant or "") if stages[at].stage == Stage.SOLO_RUN else ""
            at += 1
        values |= {field: (reading.t, value) for field, value in reading.values.items()}
        values = {field: known for field, known in values.items() if reading.t - known[0] <= 1.0}
        columns.append(_Column({field: value for field, (_, value) in values.items()}, alone))
    return columns


def _draw_captions(area: Area, places: Sequence[tuple[int, _Column]]) -> None:
    """The names of what runs alone, over their stretches."""
    runs: list[tuple[int, int, str]] = []
    for cell, column in places:
        if runs and runs[-1][2] == column.variant and runs[-1][1] == cell - 1:
            runs[-1] = runs[-1][0], cell, column.variant
        else:
            runs.append((cell, cell, column.variant))
    for start, end, name in runs:
        if name:
            room = end - start + 1
            area.put(0, start, f"├{name}"[:room].ljust(room, "─") if room > 1 else "├", "bold")


def _top(report: RunReport, field: str, columns: Sequence[_Column]) -> float:
    """The value at which a chart is full: the limit where there is one."""
    assert report.telemetry is not None
    if FIELDS[field].unit == "%":
        return PERCENT
    if limit := report.telemetry.limits.get(field):
        return limit
    if field == "temperature":
        return _HOTTEST_C
    return max((column.values.get(field, 0.0) for column in columns), default=0.0) or 1.0


def _value(report: RunReport, field: str, value: float) -> str:
    assert report.telemetry is not None
    limit, unit = report.telemetry.limits.get(field), FIELDS[field].unit
    if unit == "B":
        return byte_count(value)
    of = f"/{limit:.0f}" if limit and unit != "%" else ""
    return f"{value:.0f}{of} {unit}"


def _validity(report: RunReport) -> tuple[str, str]:
    """What makes the readings, or the measurement, less than they seem; else that nothing does."""
    telemetry = report.telemetry
    assert telemetry is not None
    if telemetry.lost:
        return sentence(telemetry.lost), "bold red"
    if telemetry.stale:
        return f"stale: nothing for {telemetry.age_s or 0:.0f} s", "bold red"
    if telemetry.gpu:
        return clocks_words(telemetry), "" if telemetry.clocks == "ok" else "yellow"
    contention = [variant.contention for variant in report.variants if variant.contention is not None]
    if not contention:
        return "no block was timed so far", ""
    words = f"contention up to {max(contention):.0%}: so long a timed thread did not run"
    return words, "yellow" if max(contention) >= _CONTENDED else ""


_ABOUT = (
    "The device over the last seconds, with the name of the variant that ran. While variants are measured "
    "they take turns; afterwards each runs alone, and a reading is one variant's own."
)
CHARTS = Panel("device", _heading, _rows, _draw, _ABOUT)
