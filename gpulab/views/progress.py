"""A run under way: where it is, and the table with its narrowing intervals."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from gpulab.model.conclude import run_result
from gpulab.model.state import RunState
from gpulab.views.goodput import goodput, phases
from gpulab.views.results import claims
from gpulab.views.table import table
from gpulab.views.telemetry import Rows
from gpulab.views.text import Glyphs, plus_minus, seconds

_LAST_LINES = 3


def headline(state: RunState, now: float | None = None) -> str:
    """What is going on, and since when: until `now` on the events' clock, by default the last of them."""
    if state.request is None:
        return "starting"
    since = (state.t if now is None or state.outcome else now) - state.started_t
    return f"{state.request.scenario} · {stage(state)} · {since:.0f} s"


def stage(state: RunState) -> str:
    """Where the run is: a stage and its variant, or how far the measurement is."""
    if state.stage == "measure" and state.planned:
        return f"epoch {len(state.epochs) + 1} (of {state.planned.epochs} or more), round {state.rounds}"
    return f"{state.stage} {state.at_variant}" if state.at_variant else state.stage


def lines(state: RunState, glyphs: Glyphs, now: float | None = None) -> RenderableType:
    """The headline, the table so far, the claim, and the last that the scenario printed."""
    so_far = run_result(state, live=True)
    parts: list[RenderableType] = [Text(glyphs(headline(state, now)), style="bold", no_wrap=True)]
    if so_far.variants:
        parts += ["", table(so_far, glyphs), ""]
    parts += [Rows(state, glyphs, now), ""] if state.device else []
    for part in (phases(so_far, glyphs), goodput(so_far, glyphs)):
        parts += [part, ""] if part is not None else []
    parts += [Text(glyphs(line), style) for line, style in claims(so_far)]
    printed = [line for log in state.log for line in log.lines][-_LAST_LINES:]
    parts += [Text(glyphs(f"  {line}"), style="dim", no_wrap=True, overflow=glyphs.overflow) for line in printed]
    return Group(*parts)


def one_line(state: RunState) -> str:
    """The headline with the times so far: for a log that cannot be redrawn."""
    times = [
        f"{one.name} {seconds(one.time_s.median)} {plus_minus(one.time_s.low, one.time_s.high, one.time_s.median)}"
        for one in run_result(state, live=True).variants
        if state.stage == "measure" and one.time_s
    ]
    return ", ".join(part.strip() for part in (headline(state), *times))
