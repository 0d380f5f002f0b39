"""Telemetry: two rows that live beside a run, and the table of what each variant did while it ran alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from gpulab.model.result import RunResult, VariantResult
from gpulab.model.state import RunState
from gpulab.model.telemetry import FIELDS, PERCENT, SLOWED, STALE_S, letters
from gpulab.views.text import Glyphs, byte_count, rate, seconds, three

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.,-=+*#"
_WIDEST_NAME = 16
_MOST_CELLS, _RECENT = 12, 10
_SHORT = {"occupancy": "occ", "worker_cpu": "worker CPU", "machine_cpu": "machine CPU"}
_CHARTS = ("sm", "occupancy", "tensor", "dram")
_HOST_CHARTS = ("worker_cpu", "machine_cpu")


@dataclass(frozen=True)
class Rows:
    """Two lines: charts on fixed scales with their peak, and figures with what holds the clocks back."""

    state: RunState
    glyphs: Glyphs
    now: float | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        state, glyphs = self.state, self.glyphs
        if state.sampler is None:
            if state.device and state.request and state.request.telemetry != "off":
                yield Text("telemetry: waiting for the driver", "dim", no_wrap=True)
            return
        if state.sampler.gpu and "sm" in state.unsupported:
            charts = _derived_rates(state)
        else:
            charts = _charts(state, _CHARTS if state.sampler.gpu else _HOST_CHARTS, glyphs, options.max_width)
        figures = "  ".join(_figures(state))
        last_t = state.telemetry[-1].t if state.telemetry else state.sampler.t
        age = 0.0 if self.now is None or state.outcome else self.now - last_t
        stale = age > STALE_S
        if stale:
            figures = f"stale: nothing for {age:.0f} s  {figures}"
        if state.lost:
            figures = f"{state.lost}  {figures}"
        elif state.sampler.gpu is None and state.sampler.why:
            figures = f"{figures}  no GPU telemetry: {state.sampler.why}"
        style = "bold red" if state.lost or stale else ""
        for line, of in ((charts or "telemetry: no reading so far", ""), (figures, style)):
            yield Text(glyphs(line.strip()), of, no_wrap=True, overflow=glyphs.overflow)


def _charts(state: RunState, names: Sequence[str], glyphs: Glyphs, width: int) -> str:
    """For each field its label, the last readings as bars from 0 to 100, the last value, and the peak."""
    read = {name: [one.values[name] for one in state.telemetry if name in one.values] for name in names}
    told = {
        name: (f"{_SHORT.get(name, FIELDS[name].label)} ", f" {values[-1]:.0f}% ^{max(values):.0f}")
        for name, values in read.items()
        if values
    }
    if not told:
        return ""
    room = width - 2 * (len(told) - 1) - sum(len(before) + len(after) for before, after in told.values())
    cells = max(3, min(_MOST_CELLS, room // len(told)))
    return "  ".join(
        f"{before}{bars(read[name][-cells:], PERCENT, glyphs)}{after}" for name, (before, after) in told.items()
    )


def _derived_rates(state: RunState) -> str:
    """Where the device counts nothing: what each variant's declared work makes of its measured time."""
    told = []
    for name, one in state.variants.items():
        time = state.rough_time(name)
        if one.built is None or not time:
            continue
        step_s = time * one.built.items
        rates = [f"{rate(one.built.bytes / step_s)}B/s"] if one.built.bytes else []
        rates += [f"{rate(one.built.flops / step_s)}FLOP/s"] if one.built.flops else []
        told += [f"{name} {' '.join(rates)}"] if rates else []
    return f"derived from declared work: {', '.join(told)}" if told else ""


def bars(values: Sequence[float], top: float, glyphs: Glyphs) -> str:
    """One cell a value, on a fixed scale from 0 to `top`."""
    marks = _ASCII_BARS if glyphs.ascii else _BARS
    return "".join(marks[min(len(marks) - 1, max(0, int(value / top * len(marks))))] for value in values)


def _figures(state: RunState) -> list[str]:
    """The last value of each figure that the device gives, over its limit where that is known."""
    last: dict[str, float] = {}
    for one in reversed(state.telemetry if state.lost else state.telemetry[-_RECENT:]):
        last = {**one.values, **last}
    limits = state.sampler.limits if state.sampler else {}
    found = []
    for name, label, unit in (("power", "", "W"), ("sm_clock", "SM ", "MHz"), ("temperature", "", "C")):
        if name in last:
            limit = f"/{limits[name]:.0f}" if name in limits else ""
            found.append(f"{label}{last[name]:.0f}{limit} {unit}")
    if "memory_used" in last:
        limit = f" of {byte_count(limits['memory_used'])}" if "memory_used" in limits else ""
        found.append(f"memory {byte_count(last['memory_used'])}{limit}")
    reasons = [one.reasons for one in state.telemetry if one.reasons is not None]
    if reasons:
        slowed = any(reason & SLOWED for reason in reasons)
        found.append(f"clocks {letters(reasons[-1])}" + (" (slowed before)" if slowed else ""))
    if not found and "rss" in last:
        found += [f"RSS {byte_count(last['rss'])}"]
        found += [f"preempted {last['switches']:.0f}/s"] if "switches" in last else []
        found += [f"CPU {last['frequency']:.0f} MHz"] if "frequency" in last else []
    return found


def alone(run: RunResult, glyphs: Glyphs) -> Table | None:
    """A row a variant: what the device, or on a CPU the host, did while it ran by itself."""
    soaked = [one for one in run.variants if one.soak and one.soak.readings]
    if not soaked:
        return None
    on_gpu = run.telemetry is not None and run.telemetry.gpu is not None
    columns = [*_GPU_COLUMNS, *_derived(run)] if on_gpu else _HOST_COLUMNS
    shown = [column for column in columns if any(_cell(one, column[0], glyphs) for one in soaked)]
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    head = f"alone, {max(one.soak.seconds for one in soaked if one.soak):.0f} s"
    names = max(len(head), *(len(one.name) for one in soaked))
    table.add_column(glyphs(head), overflow="fold", min_width=min(names, _WIDEST_NAME))
    for _, label in shown:
        table.add_column(glyphs(label), justify="right", no_wrap=True)
    for one in soaked:
        table.add_row(glyphs(one.name), *(glyphs(_cell(one, name, glyphs) or "n/a") for name, _ in shown))
    return table


_GPU_COLUMNS = [
    ("time", "time/step"),
    ("sm", "SM %"),
    ("occupancy", "occ. %"),
    ("tensor", "tensor %"),
    ("dram", "DRAM %"),
    ("power", "W"),
    ("energy", "J/item"),
    ("sm_clock", "MHz"),
    ("temperature", "C"),
    ("clocks", "clocks"),
]
_HOST_COLUMNS = [
    ("time", "time/step"),
    ("worker_cpu", "worker CPU %"),
    ("machine_cpu", "machine CPU %"),
    ("rss", "RSS"),
    ("switches", "preempted/s"),
    ("frequency", "MHz"),
]


def _derived(run: RunResult) -> list[tuple[str, str]]:
    """Where the device counts nothing, rates from declared work and measured time: labelled so."""
    if run.telemetry and "sm" not in run.telemetry.unsupported:
        return []
    return [("bytes", "B/s, derived"), ("flops", "FLOP/s, derived")]


def _cell(one: VariantResult, name: str, glyphs: Glyphs) -> str:
    soak = one.soak
    assert soak is not None
    if name == "time":
        return seconds(soak.time_s)
    if name == "energy":
        return "" if soak.energy_j is None else f"{soak.energy_j:.3g}"
    if name == "clocks":
        return soak.clocks
    if name in ("bytes", "flops"):
        work = getattr(one, name)
        return rate(work / soak.time_s) if work and soak.time_s else ""
    value = soak.means.get(name)
    if value is None:
        return ""
    return byte_count(value) if name == "rss" else three(value)
