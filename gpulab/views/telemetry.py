"""Telemetry: two rows that live beside a run, and the table of what each variant did while it ran alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gpulab.protocol.telemetry_fields import CLOCK_LETTERS, FIELDS, PERCENT
from gpulab.report.report import RunReport, SoloReport, TelemetryReport
from gpulab.views.findings import sentence
from gpulab.views.text import Glyphs, byte_count, rate, seconds, three_digits

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.,-=+*#"
_SHORTEST_NAME = 8
_MOST_CELLS = 12
_SHORT_LABELS = {"occupancy": "occ"}
_GPU_CHARTS = ("sm", "occupancy", "tensor", "dram")
_HOST_CHARTS = ("worker_cpu", "machine_cpu")
_GPU_COLUMNS = ("time", "sm", "occupancy", "tensor", "dram", "power", "energy", "sm_clock", "temperature", "clocks")
_DERIVED_COLUMNS = ("bytes_per_s", "flops_per_s")
_HOST_COLUMNS = ("time", "worker_cpu", "machine_cpu", "rss", "switches", "frequency")
_HEADS = {
    "time": "time/step",
    "energy": "J/item",
    "clocks": "clocks",
    "bytes_per_s": "B/s, derived",
    "flops_per_s": "FLOP/s, derived",
}
"""Of columns that are no field as it was sampled."""
_SEEMS_BUSY = 75.0
_SHORT_HEADS = {"occupancy": "occ."}


@dataclass(frozen=True)
class TelemetryRows:
    """Two lines: charts on fixed scales with their peak, and figures with what holds the clocks back."""

    report: RunReport
    glyphs: Glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        telemetry, glyphs = self.report.telemetry, self.glyphs
        if telemetry is None:
            if self.report.progress.awaiting_telemetry:
                yield Text("telemetry: waiting for the driver", "dim", no_wrap=True)
            return
        if telemetry.gpu and "sm" in telemetry.unsupported:
            charts = _derived_rates(self.report)
        else:
            fields = _GPU_CHARTS if telemetry.gpu else _HOST_CHARTS
            charts = _charts(telemetry, fields, glyphs, options.max_width)
        figures, style = "  ".join(_figures(telemetry)), ""
        if telemetry.stale:
            figures, style = f"stale: nothing for {telemetry.age_s or 0:.0f} s  {figures}", "bold red"
        if telemetry.lost:
            figures, style = f"{sentence(telemetry.lost)}  {figures}", "bold red"
        elif telemetry.gpu is None and telemetry.no_gpu_reason:
            figures = f"{figures}  no GPU telemetry: {sentence(telemetry.no_gpu_reason)}"
        for line, line_style in ((charts or "telemetry: no reading so far", ""), (figures, style)):
            yield Text(glyphs(line.strip()), line_style, no_wrap=True, overflow=glyphs.overflow)


def bars(values: Sequence[float], top: float, glyphs: Glyphs) -> str:
    """A cell a value, on a fixed scale from 0 to `top`."""
    marks = _ASCII_BARS if glyphs.ascii else _BARS
    return "".join(marks[min(len(marks) - 1, max(0, int(value / top * len(marks))))] for value in values)


def solo_runs(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """A row a variant: what the device, or on a CPU the host, did while it ran by itself; None where none did."""
    runs = [(variant.name, variant.solo_run) for variant in report.variants if variant.solo_run]
    runs = [(name, solo) for name, solo in runs if solo.readings]
    if not runs:
        return None
    telemetry = report.telemetry
    columns: Sequence[str] = _HOST_COLUMNS
    if telemetry is not None and telemetry.gpu is not None:
        # Where the device counts nothing, rates from declared work and measured time: labelled so.
        busy = ("busy",) if any(_only_seems_busy(solo) for _, solo in runs) else ()
        columns = (
            *_GPU_COLUMNS[:1],
            *busy,
            *_GPU_COLUMNS[1:],
            *(_DERIVED_COLUMNS if "sm" in telemetry.unsupported else ()),
        )
    shown = [column for column in columns if any(_cell(solo, column) for _, solo in runs)]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    head = f"solo run, {max(solo.seconds for _, solo in runs):.0f} s"
    longest = max(len(name) for name, _ in runs)
    if longest < len(head):
        head = head.replace(", ", "\n")
    table.add_column(head, overflow="fold", min_width=min(longest, _SHORTEST_NAME), vertical="bottom")
    for column in shown:
        table.add_column(glyphs(_head(column)), justify="right", no_wrap=True, vertical="bottom")
    for name, solo in runs:
        table.add_row(glyphs(name), *(glyphs(_cell(solo, column) or "n/a") for column in shown))
    legend = _clock_legend("".join(solo.clocks for _, solo in runs if solo.clocks not in ("ok", "n/a")))
    return Group(table, Text(legend, "dim")) if legend else table


def _only_seems_busy(solo: SoloReport) -> bool:
    """Whether some kernel runs nearly all the time, and most of the multiprocessors have nothing to do."""
    return solo.means.get("busy", 0.0) - solo.means.get("sm", 100.0) > _SEEMS_BUSY


def _clock_legend(letters: str) -> str:
    """What the letters of the clock states mean; empty where there are none."""
    meanings = [f"{letter} {name}" for letter, name in CLOCK_LETTERS.items() if letter in letters]
    return f"clocks: {', '.join(meanings)}" if meanings else ""


def _charts(telemetry: TelemetryReport, fields: Sequence[str], glyphs: Glyphs, width: int) -> str:
    """For each field its label, the last readings as bars from 0 to 100, the last value, and the peak."""
    texts = {}
    for field in fields:
        if values := telemetry.recent.get(field):
            label = _SHORT_LABELS.get(field, FIELDS[field].label)
            texts[field] = f"{label} ", f" {values[-1]:.0f}% ^{telemetry.peaks[field]:.0f}"
    if not texts:
        return ""
    room = width - 2 * (len(texts) - 1) - sum(len(before) + len(after) for before, after in texts.values())
    cells = max(3, min(_MOST_CELLS, room // len(texts)))
    charts = (
        f"{before}{bars(telemetry.recent[field][-cells:], PERCENT, glyphs)}{after}"
        for field, (before, after) in texts.items()
    )
    return "  ".join(charts)


def _derived_rates(report: RunReport) -> str:
    """Where the device counts nothing: what each variant's declared work makes of its measured time."""
    variants = []
    for variant in report.variants:
        rates = [f"{rate(variant.bytes_per_s)}B/s"] if variant.bytes_per_s else []
        rates += [f"{rate(variant.flops_per_s)}FLOP/s"] if variant.flops_per_s else []
        variants += [f"{variant.name} {' '.join(rates)}"] if rates else []
    return f"derived from declared work: {', '.join(variants)}" if variants else ""


def _figures(telemetry: TelemetryReport) -> list[str]:
    """The last value of each figure that the device gives, over its limit where that is known."""
    last, limits = telemetry.last, telemetry.limits
    figures = []
    for field, label in (("power", ""), ("sm_clock", "SM "), ("temperature", "")):
        if field in last:
            limit = f"/{limits[field]:.0f}" if field in limits else ""
            figures.append(f"{label}{last[field]:.0f}{limit} {FIELDS[field].unit}")
    if "memory_used" in last:
        limit = f" of {byte_count(limits['memory_used'])}" if "memory_used" in limits else ""
        figures.append(f"memory {byte_count(last['memory_used'])}{limit}")
    if telemetry.gpu and telemetry.clocks != "n/a":
        figures.append(clocks_words(telemetry))
    if not figures and "rss" in last:
        figures.append(f"RSS {byte_count(last['rss'])}")
        figures += [f"preempted {last['switches']:.0f}{FIELDS['switches'].unit}"] if "switches" in last else []
        figures += [f"CPU {last['frequency']:.0f} {FIELDS['frequency'].unit}"] if "frequency" in last else []
    return figures


def clocks_words(telemetry: TelemetryReport) -> str:
    """What holds the clocks back now, and whether anything slowed them before."""
    names = ", ".join(name for letter, name in CLOCK_LETTERS.items() if letter in telemetry.clocks)
    held_back = f" ({names})" if names else ""
    return f"clocks {telemetry.clocks}{held_back}{' (slowed before)' if telemetry.slowed else ''}"


def _head(column: str) -> str:
    """The head of a column of the solo runs: label and unit, or the unit alone where it says enough."""
    if column in _HEADS:
        return _HEADS[column]
    field = FIELDS[column]
    label = _SHORT_HEADS.get(column, field.label)
    return {"%": f"{label} %", "/s": f"{label}/s", "B": label}.get(field.unit, field.unit)


def _cell(solo: SoloReport, column: str) -> str:
    if column == "time":
        return seconds(solo.time_s)
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
