"""`--observer-effect`: what telemetry does to the times it stands beside, measured in one process.

The sampler is switched on and off in turn, in random order within each pair, while the scenario runs: so a
machine that drifts, and a process that was lucky with its memory, weigh on both sides alike.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp, log
from statistics import median
from time import monotonic

import msgspec

from gpulab.analysis.statistics import median_interval
from gpulab.headless.drive import drive
from gpulab.headless.options import Options
from gpulab.headless.output import check_json, check_run_file, write_json
from gpulab.headless.progress import progress_of
from gpulab.headless.show import show_failures
from gpulab.headless.terminal import open_terminal
from gpulab.protocol.events import AnyEvent, Samples, TelemetrySwitched
from gpulab.protocol.jobs import TELEMETRY_OFF, RunRequest
from gpulab.protocol.run_file import read_run_file
from gpulab.protocol.statuses import Stage
from gpulab.report.exit_codes import ExitCode
from gpulab.session.launch import plan, single_launch, start
from gpulab.session.run import Run
from gpulab.session.run_files import default_path
from gpulab.session.settings import UsageError
from gpulab.session.source import Live
from gpulab.views.findings import sentence_with_place

_WINDOW_S = 0.5
_SETTLE_S = 0.05
_TIME_S = 40.0
_SMALL = 0.01
_Block = tuple[float, float, float]
"""Start, end, and time over the variant's median."""


class ObserverEffect(msgspec.Struct, frozen=True, kw_only=True):
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

    def __init__(self, live: Live, seed: int) -> None:
        self._live, self._random = live, random.Random(seed)
        self._next: list[bool] = []
        self._due = 0.0

    def __call__(self, run: Run) -> None:
        if run.state.stage != Stage.MEASURE or monotonic() < self._due:
            return
        if not self._next:
            self._next = self._random.sample([True, False], 2)
        self._live.switch_telemetry(on=self._next.pop())
        self._due = monotonic() + _WINDOW_S


def observer_effect(names: Sequence[str], options: Options) -> int:
    """Measure it on one scenario, print the ratio with its interval. UsageError."""
    if len(names) != 1 or options.telemetry == TELEMETRY_OFF:
        raise UsageError("--observer-effect takes one scenario, with its telemetry")
    name = names[0]
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    launch = single_launch(name)
    if launch.functions:
        raise UsageError(f"--observer-effect requires a scenario, and {name} is a plain function")
    request = plan(launch, replace(options, time_s=options.time_s or _TIME_S, profile="off"))
    if not isinstance(request, RunRequest):
        reason = sentence_with_place(request.reason) if request.reason else request.outcome
        raise UsageError(f"{name} cannot run here: {reason}")
    request = msgspec.structs.replace(request, job=msgspec.structs.replace(request.job, stop_early=False))
    path = options.output or default_path(f"{launch.label}-observer")
    check_run_file(path)
    check_json(options.json_file, [path])
    live = start(request, path)
    with progress_of(terminal) as progress:
        report = drive(live, None, [progress, _Switch(live, options.seed)]).report
    show_failures(report, terminal)
    ratios = _log_ratios(read_run_file(path).events)
    interval = median_interval(ratios)
    effect = ObserverEffect(scenario=launch.entry.name, pairs=len(ratios), run_file=str(path))
    if interval is not None:
        ratio, low, high = map(exp, (interval.median, interval.low, interval.high))
        effect = msgspec.structs.replace(effect, ratio=ratio, low=low, high=high)
    if options.json:
        write_json(effect, options.json)
    if effect.ratio is None or effect.low is None or effect.high is None:
        reason = sentence_with_place(report.reason) if report.reason else "give it more --time"
        terminal.say(f"{effect.scenario}: {effect.pairs} pairs, too few for an interval: {reason}")
        return report.exit_code or ExitCode.INCONCLUSIVE
    interval_text = f"{effect.ratio:.4f} ({effect.low:.4f} to {effect.high:.4f})"
    pairs = f"{effect.pairs} pairs of {_WINDOW_S:g} s"
    terminal.say(f"observer effect of telemetry on {effect.scenario}: time with / without {interval_text}, {pairs}")
    small = all(abs(end - 1) <= _SMALL for end in (effect.low, effect.high))
    terminal.results.print("inside 1 %" if small else "not shown to be inside 1 %", style="dim")
    return ExitCode.MEASURED


def _log_ratios(events: Sequence[AnyEvent]) -> list[float]:
    """log(time on / time off) of each pair of neighbouring windows, every block against its variant's median."""
    switches = [event for event in events if isinstance(event, TelemetrySwitched)]
    blocks = _blocks(events)
    windows: list[tuple[bool, float | None]] = []
    for switch, following in pairwise(switches):
        inside = [time for start, end, time in blocks if start >= switch.t + _SETTLE_S and end <= following.t]
        windows.append((switch.on, log(median(inside)) if inside else None))
    ratios = []
    for (first_on, first), (second_on, second) in zip(windows[::2], windows[1::2], strict=False):
        if first_on != second_on and first is not None and second is not None:
            ratios.append(first - second if first_on else second - first)
    return ratios


def _blocks(events: Sequence[AnyEvent]) -> list[_Block]:
    # Against the whole run's median: an epoch is shorter than a window, and its own would take the effect away.
    timings: dict[str, list[_Block]] = defaultdict(list)
    for event in events:
        if isinstance(event, Samples):
            rows = zip(event.variant, event.times_s, event.ended, event.steps, strict=True)
            for index, time_s, end, steps in rows:
                timings[event.names[index]].append((end - time_s * steps, end, time_s))
    blocks = []
    for rows_of_variant in timings.values():
        usual = median(time_s for _, _, time_s in rows_of_variant)
        blocks += [(start, end, time_s / usual) for start, end, time_s in rows_of_variant]
    return blocks
