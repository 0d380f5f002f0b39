"""`--run FILE:function --try`: every fix that applies to a step, one by one, then all that gained
together.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace as replace_fields

from gpulab.catalog.catalog import read_file
from gpulab.core.jobs import Measure, RunRequest, TimeFunctions, TriedFix
from gpulab.core.statuses import ExitCode
from gpulab.features.fixes.declarations import FIXES, Fix
from gpulab.features.fixes.facts import StepFacts, StepRequest
from gpulab.features.fixes.look import facts_of
from gpulab.features.fixes.text import ALL_TOGETHER, scenario_text
from gpulab.features.fixes.view import fixes
from gpulab.headless.drive import drive, show_failures, show_report
from gpulab.headless.new import write_scenario
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal, check_json, check_run_file, open_terminal, write_json
from gpulab.report.commands import combine
from gpulab.report.report import RunReport
from gpulab.report.results import header
from gpulab.report.sentences import sentence
from gpulab.session.drive import Interrupts
from gpulab.session.launch import Launch, plan, single_launch, start
from gpulab.session.run_files import default_path
from gpulab.session.settings import UsageError


def try_fixes(names: Sequence[str], options: Options) -> int:
    """Measure them, print the table, and keep the scenario where it was asked for; returns the exit
    code.
    """
    launch = _check(names, options)
    planned = plan(launch, options)
    if isinstance(planned, RunReport):
        assert planned.reason is not None
        raise UsageError(f"--try {names[0]}: {sentence(planned.reason)}")
    request = step_request(planned)
    paths = _paths(launch, options)
    check_json(options.json_file, paths)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    terminal.note(f"{names[0]}: looking at a step", "dim")
    facts = facts_of(request)
    if facts.problem:
        raise UsageError(f"--try {names[0]}: {facts.problem}")
    return _Tries(launch, request, facts, options, terminal).run(paths)


class _Tries:
    """Two runs: each fix by itself, and those that gained together."""

    def __init__(
        self,
        launch: Launch,
        request: StepRequest,
        facts: StepFacts,
        options: Options,
        terminal: Terminal,
    ) -> None:
        self._launch = launch
        self._request = request
        self._facts = facts
        self._options = options
        self._terminal = terminal
        self._why_not = {fix.name: fix.applies(facts) for fix in FIXES}
        self._applying = [fix for fix in FIXES if not self._why_not[fix.name]]
        self._reports: list[RunReport] = []

    def run(self, paths: Sequence[Path]) -> int:
        """The exit code of both; without a fix that applies nothing is measured."""
        if not self._applying:
            self._terminal.say("no fix that can be applied from outside fits this step:")
            for name, reason in self._why_not.items():
                self._terminal.say(f"  {name}: {reason}")
            return ExitCode.MEASURED
        tried = tuple(self._tried(fix) for fix in FIXES)
        with Interrupts() as interrupts, ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="gpulab-")))
            text = scenario_text(self._request, self._facts, self._applying)
            first = self._measure(text, folder, tried, paths[0], interrupts, last=False)
            together = None
            gaining = self._gaining(first)
            if len(gaining) > 1 and first.exit_code != ExitCode.INTERRUPTED:
                text = scenario_text(self._request, self._facts, (), gaining)
                names = ", ".join(fix.name for fix in gaining)
                all_of_them = (TriedFix(name=ALL_TOGETHER, sentence=names),)
                quiet = replace(self._options, profile="off")
                together = self._measure(
                    text, folder, all_of_them, paths[1], interrupts, last=True, options=quiet
                )
        self._show(first, together, gaining)
        if self._options.keep:
            text = scenario_text(self._request, self._facts, self._applying, gaining)
            write_scenario("--keep", self._options.keep, text)
            shown = shlex.quote(str(self._options.keep))
            self._terminal.say(f"wrote {self._options.keep}; measure it: gpulab --run {shown}")
        return self._finish()

    def _tried(self, fix: Fix) -> TriedFix:
        return TriedFix(
            name=fix.name,
            sentence=fix.sentence,
            why_not=self._why_not[fix.name],
            answers=tuple(fix.answers),
            lines=tuple(fix.lines(self._facts)),
            edit=fix.edit,
        )

    def _measure(
        self,
        text: str,
        folder: Path,
        tried: tuple[TriedFix, ...],
        run_file: Path,
        interrupts: Interrupts,
        *,
        last: bool,
        options: Options | None = None,
    ) -> RunReport:
        path = folder / f"{self._launch.label.replace('-', '_').replace('.', '_')}_fixes.py"
        path.write_text(text, encoding="utf-8")
        settings = replace(options or self._options, arguments=None)
        request = plan(Launch(read_file(path)), settings)
        if isinstance(request, RunReport):
            assert request.reason is not None
            raise UsageError(f"--try: {sentence(request.reason)}")
        assert isinstance(request.job, Measure)
        subject = replace_fields(request.job.subject, fixes=tried)
        request = replace_fields(request, job=replace_fields(request.job, subject=subject))
        report = drive(start(request, run_file), interrupts, self._terminal, last=last)
        show_failures(report, self._terminal)
        self._reports.append(report)
        return report

    def _gaining(self, report: RunReport) -> list[Fix]:
        """Of each group the one that gains most, in the order in which they are applied."""
        speedups = {fix.name: fix.speedup or 0.0 for fix in report.fixes if fix.gained}
        best: dict[str, Fix] = {}
        for fix in self._applying:
            speedup = speedups.get(fix.name, 0.0)
            before = best.get(fix.group)
            if speedup and (before is None or speedup > speedups[before.name]):
                best[fix.group] = fix
        return [fix for fix in self._applying if fix in best.values()]

    def _show(self, report: RunReport, together: RunReport | None, gaining: Sequence[Fix]) -> None:
        terminal = self._terminal
        if self._options.verbose:
            for each in self._reports:
                show_report(each, terminal, self._options)
        terminal.show(header(report))
        terminal.say("")
        terminal.show(fixes(report, together))
        terminal.say("")
        if together is not None:
            terminal.say(f"{ALL_TOGETHER}: {', '.join(fix.name for fix in gaining)}")
        elif report.timed:
            what = gaining[0].name if gaining else "none"
            terminal.say(f"fixes that gain: {what}, so there is nothing to try together")
        for each in self._reports:
            if each.run_file:
                terminal.say(f"run file: {each.run_file}")

    def _finish(self) -> int:
        environment = self._reports[0].environment
        command = combine(self._reports, environment, [], None)
        if self._options.json:
            write_json(command, self._options.json)
        return command.exit_code


def _check(names: Sequence[str], options: Options) -> Launch:
    if len(names) != 1:
        raise UsageError("--try takes one function: --run FILE:function --try")
    launch = single_launch(names[0])
    if len(launch.functions) != 1:
        raise UsageError("--try takes a function: write --run FILE:function --try")
    refuse_others("--try", options, params=False)
    if options.keep and options.keep.exists():
        raise UsageError(f"--keep {options.keep}: it exists, and files are never overwritten")
    return launch


def refuse_others(flag: str, options: Options, *, params: bool) -> None:
    """UsageError for flags that make no sense with this one; `params`: whether --set does."""
    others = {
        "--sweep": options.sweep is not None,
        "--repeat": options.repeat is not None,
        "--fail-below": options.required_speedup is not None,
        "--plot": options.plot is not None,
        "--trace": options.trace is not None,
        "--from-start": options.from_start is not None,
        "--set": bool(options.chosen) and not params,
    }
    for other, given in others.items():
        if given:
            raise UsageError(f"{flag} and {other}: one or the other")


def step_request(planned: RunRequest) -> StepRequest:
    job = planned.job
    assert isinstance(job, TimeFunctions)
    subject, arguments = job.subject, job.subject.arguments
    return StepRequest(
        file=subject.path,
        function=subject.variants[0].name,
        arguments=f"{arguments.path}:{arguments.function}" if arguments else None,
        device=job.device,
        threads=job.threads,
    )


def _paths(launch: Launch, options: Options) -> list[Path]:
    """Where the two run files go."""
    if options.output is None:
        return [default_path(f"{launch.label}-{name}") for name in ("fixes", "together")]
    output = options.output
    paths = [output, output.with_stem(f"{output.stem}-together")]
    for path in paths:
        check_run_file(path)
    return paths
