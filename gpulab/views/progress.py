"""A run under way: one line a variant, with its narrowing interval. Never a verdict: width alone stops a run."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.compare import theta
from gpulab.model.scenario import CONTROL
from gpulab.model.state import RunState, VariantState
from gpulab.model.stats import Interval, as_speedup
from gpulab.views.text import STYLES, Glyphs, plus_minus, seconds, times


def headline(state: RunState) -> str:
    """What is going on, and since when."""
    name = state.request.scenario if state.request else ""
    at = f"{state.stage} {state.at_variant}" if state.at_variant else state.stage
    if state.stage == "measure" and state.planned:
        at = f"epoch {len(state.epochs) + 1} (of {state.planned.epochs} or more), round {state.rounds}"
    return f"{name} · {at} · {state.t - state.started_t:.0f} s"


def lines(state: RunState, glyphs: Glyphs) -> RenderableType:
    """The headline and a line for every variant and the control."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, one in state.variants.items():
        table.add_row(*(Text(glyphs(cell), style=STYLES.get(one.status, "")) for cell in cells(state, name, one)))
    if control := _against(state, CONTROL):
        table.add_row(*(Text(glyphs(cell), style="dim") for cell in ("  control", "", *_ratio(control))))
    return Group(Text(glyphs(headline(state)), style="bold", no_wrap=True), table)


def cells(state: RunState, name: str, one: VariantState) -> tuple[str, ...]:
    """(name, time, what it is against or its status)."""
    if one.status in ("failed", "wrong", "invalid", "skipped"):
        return f"  {name}", "", one.status, ""
    time = state.time_per_item(name)
    rough = time.median if time else state.rough_time(name)
    if rough is not None and one.built and state.request and state.request.per == "step":
        rough *= one.built.items
    if rough is None and one.calibrated:
        rough = one.calibrated.step_s
    told = seconds(rough) if rough is not None else ""
    width = plus_minus(time.low, time.high, time.median) if time else ""
    against = _against(state, name)
    return f"  {name}", f"{told} {width}", *(_ratio(against) if against else ("", ""))


def _against(state: RunState, name: str) -> Interval | None:
    pairs = state.request.pairs({*state.variants, CONTROL}) if state.request else []
    found = next((theta(state.epochs, name, against, dear=state.dear) for one, against in pairs if one == name), None)
    return as_speedup(found) if found else None


def _ratio(of: Interval) -> tuple[str, str]:
    return times(of.median), plus_minus(of.low, of.high, of.median)
