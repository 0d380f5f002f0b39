"""`--run FILE:function --try`: every fix that applies to a step, or those named: one by one, then
all that gained together.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from gpulab.core.jobs import RunRequest
from gpulab.core.statuses import ExitCode
from gpulab.features.trials.declarations import gaining
from gpulab.features.trials.fix_runs import Fixes
from gpulab.features.trials.fix_view import fixes as table
from gpulab.features.trials.fix_view import what_ran_together
from gpulab.headless.drive import drive
from gpulab.headless.new import write_scenario
from gpulab.headless.output import (
    Terminal,
    check_run_file,
    open_terminal,
    say_sharing,
    write_json,
)
from gpulab.headless.printed import show_failures, show_report
from gpulab.options import Options, UsageError
from gpulab.report.commands import combine
from gpulab.report.report import RunReport
from gpulab.session.derived import names_in
from gpulab.session.drive import Interrupts, StoppedError
from gpulab.session.launch import Launch, single_launch, start
from gpulab.session.look import Look
from gpulab.session.run_files import default_path
from gpulab.show.view import header


def try_fixes(names: Sequence[str], options: Options) -> int:
    """Measure them, print the table, and keep the scenario where it was asked for; returns the exit
    code.
    """
    say_sharing(options)
    if len(names) != 1:
        raise UsageError("--try takes one function: --run FILE:function --try")
    if options.keep and options.keep.exists():
        raise UsageError(f"--keep {options.keep}: it exists, and files are never overwritten")
    launch = single_launch(names[0])
    paths = _paths(launch, options)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    terminal.note(f"{names[0]}: analyzing a step", "dim")
    with Interrupts() as interrupts:
        look = Look()
        interrupts.stop_with(look.cancel)
        try:
            fixes = Fixes(launch, options, look, names_in(options.try_fixes))
        except StoppedError:
            interrupts.end(answered=True)
            return ExitCode.INTERRUPTED
        return _Tries(fixes, options, terminal).run(paths, interrupts)


class _Tries:
    """Two runs: each fix by itself, and those that gained together."""

    def __init__(self, fixes: Fixes, options: Options, terminal: Terminal) -> None:
        self._fixes = fixes
        self._options = options
        self._terminal = terminal
        self._reports: list[RunReport] = []

    def run(self, paths: Sequence[Path], interrupts: Interrupts) -> int:
        """The exit code of both; without a fix that applies nothing is measured."""
        if not self._fixes.applying:
            self._terminal.say("no fix that can be applied from outside fits this step:")
            for name, reason in self._fixes.why_not.items():
                self._terminal.say(f"  {name}: {reason}")
            return ExitCode.MEASURED
        first = self._measure(self._fixes.request(), paths[0], interrupts, last=False)
        gained = gaining(first.fixes)
        together = None
        if len(gained) > 1 and first.exit_code != ExitCode.INTERRUPTED:
            request = self._fixes.together(gained)
            together = self._measure(request, paths[1], interrupts, last=True)
        interrupts.end()
        self._show(first, together)
        if self._options.keep:
            write_scenario("--keep", self._options.keep, self._fixes.text(gained))
            shown = shlex.quote(str(self._options.keep))
            self._terminal.say(f"wrote {self._options.keep}; measure it: gpulab --run {shown}")
        command = combine(self._reports, first.environment, [], None)
        if self._options.json:
            write_json(command, self._options.json)
        return command.exit_code

    def _measure(
        self, request: RunRequest, run_file: Path, interrupts: Interrupts, *, last: bool
    ) -> RunReport:
        report = drive(start(request, run_file), interrupts, self._terminal, last=last)
        show_failures(report, self._terminal)
        self._reports.append(report)
        return report

    def _show(self, report: RunReport, together: RunReport | None) -> None:
        terminal = self._terminal
        if self._options.verbose:
            for each in self._reports:
                show_report(each, terminal, self._options)
        terminal.show(header(report))
        terminal.say("")
        terminal.show(table(report, together))
        terminal.say("")
        if words := what_ran_together(report, together):
            terminal.say(words)
        for each in self._reports:
            if each.run_file:
                terminal.say(f"run file: {each.run_file}")


def _paths(launch: Launch, options: Options) -> list[Path]:
    """Return where the two run files go."""
    if options.output is None:
        return [
            default_path(f"{launch.label}-{name}", options.share) for name in ("fixes", "together")
        ]
    output = options.output
    paths = [output, output.with_stem(f"{output.stem}-together")]
    for path in paths:
        check_run_file(path)
    return paths
