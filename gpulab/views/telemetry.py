"""Telemetry: two rows that live beside a run, and the table of what each variant did while it ran alone."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from gpulab.model.result import RunResult, VariantResult
from gpulab.model.state import RunState
from gpulab.model.telemetry import FIELDS, PERCENT, SLOWED, STALE_S, letters
from gpulab.views.text import Glyphs, byte_count, rate, seconds, three

_BARS = "▁▂▃▄▅▆▇█"
_ASCII_BARS = "_.,-=+*#"
_CELLS = 12
_CHARTS = ("sm", "occupancy", "tensor", "dram")
_HOST_CHARTS = ("worker_cpu", "machine_cpu")


def rows(state: RunState, glyphs: Glyphs, now: float | None = None) -> list[Text]:
    """Two lines: charts on fixed scales with their peak, and figures with what holds the clocks back."""
    if state.sampler is None:
        return []
    stale = now is not None and state.telemetry and not state.outcome and now - state.telemetry[-1].t > STALE_S
    names = _CHARTS if state.sampler.gpu and "sm" not in state.unsupported else _HOST_CHARTS
    charts = "  ".join(filter(None, (_chart(state, name, glyphs) for name in names)))
    figures = "  ".join(_figures(state))
    if stale and now is not None:
        figures += f"  stale: nothing for {now - state.telemetry[-1].t:.0f} s"
    if state.lost:
        figures += f"  {state.lost}"
    elif state.sampler.gpu is None and state.sampler.why:
        figures += f"  no GPU telemetry: {state.sampler.why}"
    style = "bold red" if state.lost or stale else ""
    found = [(charts or "telemetry: no reading so far", ""), (figures, style)]
    return [Text(glyphs(line), style, no_wrap=True, overflow=glyphs.overflow) for line, style in found if line]


def _chart(state: RunState, name: str, glyphs: Glyphs) -> str:
    """A label, the last readings as bars from 0 to 100, the last value, and the peak."""
    values = [one.values[name] for one in state.telemetry if name in one.values]
    if not values:
        return ""
    return f"{FIELDS[name].label} {bars(values[-_CELLS:], PERCENT, glyphs)} {values[-1]:.0f}% (peak {max(values):.0f})"


def bars(values: Sequence[float], top: float, glyphs: Glyphs) -> str:
    """One cell a value, on a fixed scale from 0 to `top`."""
    marks = _ASCII_BARS if glyphs.ascii else _BARS
    return "".join(marks[min(len(marks) - 1, max(0, int(value / top * len(marks))))] for value in values)


def _figures(state: RunState) -> list[str]:
    """The last value of each figure that the device gives, over its limit where that is known."""
    last: dict[str, float] = {}
    for one in reversed(state.telemetry[-2 * _CELLS :]):
        last = {**one.values, **last}
    limits = state.sampler.limits if state.sampler else {}
    found = []
    for name, unit in (("power", "W"), ("sm_clock", "MHz"), ("temperature", "C")):
        if name in last:
            limit = f"/{limits[name]:.0f}" if name in limits else ""
            found.append(f"{FIELDS[name].label} {last[name]:.0f}{limit} {unit}")
    if "memory_used" in last:
        limit = f"/{byte_count(limits['memory_used'])}" if "memory_used" in limits else ""
        found.append(f"memory {byte_count(last['memory_used'])}{limit}")
    reasons = [one.reasons for one in state.telemetry if one.reasons is not None]
    if reasons:
        slowed = any(reason & SLOWED for reason in reasons)
        found.append(f"clocks {letters(reasons[-1])}" + (" (slowed before)" if slowed else ""))
    if not found and "rss" in last:
        found += [f"RSS {byte_count(last['rss'])}"]
        found += [f"preempted {last['switches']:.0f}/s"] if "switches" in last else []
        found += [f"CPU clock {last['frequency']:.0f} MHz"] if "frequency" in last else []
    return found


def alone(run: RunResult, glyphs: Glyphs) -> Table | None:
    """A row a variant: what the device, or on a CPU the host, did while it ran by itself."""
    soaked = [one for one in run.variants if one.soak and one.soak.readings]
    if not soaked:
        return None
    on_gpu = run.telemetry is not None and run.telemetry.gpu is not None
    columns = [*_GPU_COLUMNS, *_derived(run)] if on_gpu else _HOST_COLUMNS
    shown = [column for column in columns if any(_cell(one, column[0], glyphs) for one in soaked)]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    head = f"alone, {max(one.soak.seconds for one in soaked if one.soak):.0f} s"
    table.add_column(glyphs(head), overflow="fold", min_width=len(head))
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
    if name in ("bytes", "flops"):
        work = getattr(one, name)
        return rate(work / soak.time_s) if work and soak.time_s else ""
    value = soak.means.get(name)
    if value is None:
        return ""
    return byte_count(value) if name == "rss" else three(value)
