"""`--observer-effect`: what telemetry does to the times it stands beside, measured in one process.

The sampler is switched on and off in turn, in random order within each pair, while the scenario
runs: so a machine that drifts, and a process that was lucky with its memory, weigh on both sides
alike.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from time import monotonic

import msgspec

from gpulab.core.events import Event
from gpulab.core.jobs import TELEMETRY_OFF, RunRequest
from gpulab.core.statuses import Stage
from gpulab.features.observer_effect.report import exit_code_of, observer_effect_of
from gpulab.features.observer_effect.view import effect_line, judgement
from gpulab.headless.drive import drive
from gpulab.headless.options import Options
from gpulab.headless.output import check_json, check_run_file, open_terminal, write_json
from gpulab.headless.printed import show_failures
from gpulab.report.sentences import sentence_with_place
from gpulab.session.drive import Interrupts
from gpulab.session.launch import plan, single_launch, start
from gpulab.session.run import Live, Run
from gpulab.session.run_files import default_path
from gpulab.session.settings import UsageError

_WINDOW_S = 0.5
_TIME_S = 40.0


class _Switch:
    """Turns the sampler off and on while the rounds run."""

    def __init__(self, live: Live, seed: int | None) -> None:
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
    request = msgspec.structs.replace(
        request, job=msgspec.structs.replace(request.job, stop_early=False)
    )
    path = options.output or default_path(f"{launch.label}-observer")
    check_run_file(path)
    check_json(options.json_file, [path])
    events: list[Event] = []
    with Interrupts() as interrupts:
        live = start(request, path)
        switch = _Switch(live, options.seed)
        report = drive(live, interrupts, terminal, watchers=[switch], listeners=[events.extend])
    show_failures(report, terminal)
    effect = observer_effect_of(report, events)
    if options.json:
        write_json(effect, options.json)
    terminal.say(effect_line(effect, report.reason, _WINDOW_S))
    if verdict := judgement(effect):
        terminal.results.print(verdict, style="dim")
    return exit_code_of(effect, report)
