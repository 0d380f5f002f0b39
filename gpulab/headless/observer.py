"""`--observer-effect`: what telemetry does to the times it stands beside, measured in one process.

The sampler is switched on and off in turn, in random order within each pair, while the scenario runs: so a
machine that drifts, and a process that was lucky with its memory, weigh on both sides alike.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise
from math import exp, log
from statistics import median
from time import monotonic

import msgspec

import gpulab
from gpulab.headless.output import write_json
from gpulab.headless.progress import progress_of
from gpulab.headless.run import Options, one_entry
from gpulab.headless.runner import measure
from gpulab.headless.terminal import terminal
from gpulab.model.conclude import run_result
from gpulab.model.events import TelemetrySwitched
from gpulab.model.result import INCONCLUSIVE, MEASURED
from gpulab.model.state import RunState
from gpulab.model.stats import median_interval
from gpulab.run.record import RunFile, default_path, read
from gpulab.run.request import request_for
from gpulab.run.session import Session

_WINDOW_S = 0.5
_SETTLE_S = 0.05
_TIME_S = 40.0
_INSIDE = 0.01


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """Time with telemetry over time without: the median of the pairs, and its 99 % interval."""

    schema: str = "gpulab.observer/1"
    scenario: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    pairs: int = 0
    run_file: str = ""


class _Switch:
    """Turns the sampler off and on while the rounds run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._next: list[bool] = []
        self._due = 0.0

    def __call__(self, session: Session, state: RunState) -> None:
        if state.stage != "measure" or monotonic() < self._due:
            return
        if not self._next:
            self._next = self._random.sample([True, False], 2)
        session.switch_telemetry(on=self._next.pop())
        self._due = monotonic() + _WINDOW_S


def observer_effect(name: str, options: Options) -> int:
    """Measure it on one scenario, print the ratio with its interval."""
    shown = terminal(ascii_only=options.ascii)
    entry = one_entry(name)
    options = replace(options, time_s=options.time_s or _TIME_S)
    request = msgspec.structs.replace(request_for(entry, options), stop_early=False, profile=False)
    path = options.output or default_path(f"{entry.name}-observer")
    with progress_of(shown) as show:
        state = measure(request, RunFile(path, gpulab.__version__), show, _Switch(options.seed))
    switches = [event for event in read(path).events if isinstance(event, TelemetrySwitched)]
    ratios = _pairs(state, switches)
    found = median_interval(ratios)
    effect = Effect(scenario=entry.name, pairs=len(ratios), run_file=str(path))
    if found is not None:
        effect = msgspec.structs.replace(effect, ratio=exp(found.median), low=exp(found.low), high=exp(found.high))
    if options.json:
        write_json(effect, options.json)
    console = shown.err if options.json == "-" else shown.out
    if effect.ratio is None:
        ended = run_result(state)
        why = ended.reason or "give it more --time"
        console.print(shown.glyphs(f"{entry.name}: {effect.pairs} pairs, too few for an interval: {why}"))
        return ended.exit_code or INCONCLUSIVE
    low, high = effect.low or 0.0, effect.high or 0.0
    told = f"time with / without {effect.ratio:.4f} ({low:.4f} to {high:.4f})"
    pairs = f"{effect.pairs} pairs of {_WINDOW_S:g} s"
    console.print(f"observer effect of telemetry on {entry.name}: {told}, {pairs}", soft_wrap=True)
    inside = all(abs(end - 1) <= _INSIDE for end in (low, high))
    console.print("inside 1 %" if inside else "not shown to be inside 1 %", style="dim")
    return MEASURED


def _pairs(state: RunState, switches: list[TelemetrySwitched]) -> list[float]:
    """log(time on / time off) of each pair of neighbouring windows, every block against its variant's median."""
    # Against the whole run's median: an epoch is shorter than a window, and its own would take the effect away.
    names = {name for epoch in state.epochs for name in epoch.names}
    usual = {name: median(time for epoch in state.epochs for time in epoch.times(name).values) for name in names}
    blocks = [
        (*spans[name], time / usual[name])
        for epoch in state.epochs
        for one, spans in zip(epoch.rounds, epoch.spans, strict=True)
        for name, time in one.items()
    ]
    windows: list[tuple[bool, float | None]] = []
    for this, after in pairwise(switches):
        inside = [time for start, end, time in blocks if start >= this.t + _SETTLE_S and end <= after.t]
        windows.append((this.on, log(median(inside)) if inside else None))
    found = []
    for (first_on, first), (second_on, second) in zip(windows[::2], windows[1::2], strict=False):
        if first_on != second_on and first is not None and second is not None:
            found.append(first - second if first_on else second - first)
    return found
