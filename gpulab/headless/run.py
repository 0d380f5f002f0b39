"""`--run`: one scenario, several, all of them, or plain functions; once or again and again; a table, JSON, a code."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from time import monotonic, sleep

from rich.text import Text

from gpulab.headless.drive import drive
from gpulab.headless.options import Options
from gpulab.headless.output import write_json
from gpulab.headless.plot import plot
from gpulab.headless.printed import show_failures, show_report
from gpulab.headless.run_plan import PlannedRun, plan_runs
from gpulab.headless.swept import SweptScenario, show_sweeps, swept_scenarios
from gpulab.headless.terminal import Terminal, open_terminal
from gpulab.protocol.finding import finding
from gpulab.protocol.jobs import RunRequest
from gpulab.report.commands import combine
from gpulab.report.exit_codes import ExitCode, conclusion_of
from gpulab.report.goodput.job_goodput import with_from_start
from gpulab.report.over_runs import over_runs_of
from gpulab.report.report import RunReport
from gpulab.session.interrupts import Interrupts
from gpulab.session.launch import start
from gpulab.session.settings import UsageError
from gpulab.version import __version__
from gpulab.views.findings import sentence
from gpulab.views.over_runs import over_runs_view
from gpulab.views.summary import run_line, summary

_LOOK_S = 0.2


def run(names: Sequence[str], options: Options) -> int:
    """Run them one after the other and print what came out; returns the exit code."""
    planned = plan_runs(names, options)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    command = _Command(planned, options, terminal)
    with Interrupts() as interrupts:  # a signal between two runs stops the second
        command.measure(interrupts)
    return command.finish()


class _Command:
    """All runs of one command: made one after the other, each shown as far as it is to be, then what they give."""

    def __init__(self, planned: Sequence[PlannedRun], options: Options, terminal: Terminal) -> None:
        self._planned, self._options, self._terminal = planned, options, terminal
        self._library = _is_library(planned, options)
        self._several = _SeveralRuns(planned, terminal) if self._library or options.repeat else None
        self._reports: list[RunReport] = []
        self._swept: list[SweptScenario] = []
        self._environment: dict[str, str | None] = {"gpulab": __version__, "torch": None, "driver": None}
        self._environment["python"] = platform.python_version()
        self._interrupted = False
        """While no run was under way."""

    def measure(self, interrupts: Interrupts) -> None:
        """Make every run; after one that was interrupted no other."""
        started, count = monotonic(), len(self._planned)
        sweeping = self._options.sweep is not None
        for number, planned_run in enumerate(self._planned, 1):
            if not self._wait_for(planned_run, started, interrupts):
                self._interrupted = True
                interrupts.end(answered=True)
                break
            report = self._report_of(planned_run, interrupts, number, last=number == count and not sweeping)
            self._reports.append(report)
            self._environment = report.environment or self._environment
            if self._several:
                self._several.add(report)
            if report.exit_code == ExitCode.INTERRUPTED:
                break
        else:
            if sweeping:
                self._measure_finals(interrupts)
        if self._several:
            self._several.end()

    def finish(self) -> int:
        """Print and write what all of them give; returns the exit code."""
        planned, reports, options, terminal = self._planned, self._reports, self._options, self._terminal
        swept = self._swept or swept_scenarios(planned, reports)
        over_runs = over_runs_of(reports) if options.repeat else None
        command = combine(
            reports,
            self._environment,
            [scenario.sweep for scenario in swept],
            over_runs,
            required_speedup=options.required_speedup,
            interrupted=self._interrupted,
        )
        if over_runs is not None:
            terminal.show(over_runs_view(over_runs, terminal.glyphs))
            terminal.say(*([sentence(command.reason)] if command.reason else []))
        elif options.sweep is not None:
            show_sweeps(swept, terminal)
        elif len(reports) > 1:
            terminal.results.print(summary(reports, terminal.glyphs))
        if self._several and len(reports) > 1:
            terminal.say(f"run files: {planned[0].path.parent}")
        if options.json:
            write_json(command, options.json)
        measured = ((planned_run.picture, report) for planned_run, report in zip(planned, reports, strict=False))
        plot([(report, picture) for picture, report in measured if picture and report.run_file], terminal)
        return command.exit_code

    def _report_of(self, planned_run: PlannedRun, interrupts: Interrupts, number: int, *, last: bool) -> RunReport:
        """The report of one run, which is made where it can be."""
        terminal, several, options = self._terminal, self._several, self._options
        if len(self._planned) > 1 and not (several and terminal.err.is_terminal):
            terminal.err.print(f"{planned_run.label} ({number} of {len(self._planned)})", style="bold")
        report = planned_run.request
        if isinstance(report, RunRequest):
            before, required = several.lines if several else (), None if options.repeat else options.required_speedup
            try:
                live = start(report, planned_run.path)
            except UsageError as error:
                if number == 1:
                    raise
                report = _not_started(planned_run, error)  # a disk that is full by now takes nothing from the others
            else:
                report = drive(live, interrupts, terminal, required, before=before, last=last)
            show_failures(report, terminal)
        if options.from_start is not None:
            report = with_from_start(report, options.from_start)
        if not self._library and planned_run.launch.point is None and planned_run.repetition == 0:
            show_report(report, terminal, verbose=options.verbose)
        return report

    def _wait_for(self, planned_run: PlannedRun, started: float, interrupts: Interrupts) -> bool:
        """Until the time has come for the next of the runs of the same; whether it is to be made."""
        every_s = self._options.every_s
        due = started + planned_run.repetition * every_s if every_s else 0.0
        if due - monotonic() > _LOOK_S and planned_run.launch == self._planned[0].launch:
            self._terminal.note(f"{planned_run.label} starts in {due - monotonic():.0f} s", "dim")
        while (left_s := due - monotonic()) > 0:
            if interrupts.received is not None:
                return False
            sleep(min(_LOOK_S, left_s))
        return True

    def _measure_finals(self, interrupts: Interrupts) -> None:
        """Of each scenario that was swept the points that may be the best, in turn."""
        self._swept = swept_scenarios(self._planned, self._reports)
        finals = [scenario for scenario in self._swept if scenario.request is not None]
        for number, scenario in enumerate(finals, 1):
            assert scenario.request is not None
            self._terminal.note(scenario.announcement, "bold")
            try:
                live = start(scenario.request, scenario.path(self._options))
            except UsageError as error:
                self._terminal.note(str(error), "yellow")
                continue
            scenario.final = drive(live, interrupts, self._terminal, last=number == len(finals))
            show_failures(scenario.final, self._terminal)
            if scenario.final.exit_code == ExitCode.INTERRUPTED:
                break


def _not_started(planned_run: PlannedRun, error: UsageError) -> RunReport:
    entry, code = planned_run.launch.entry, ExitCode.FAILED
    reason = finding("worker_not_run", message=str(error))
    return RunReport(scenario=entry.name, outcome=conclusion_of(code), exit_code=code, reason=reason)


def _is_library(planned: Sequence[PlannedRun], options: Options) -> bool:
    """Of a whole library only what came out is shown: everything else is in the run files."""
    files = {planned_run.launch.entry.path for planned_run in planned}
    return len(files) > 1 and options.sweep is None and not any(planned_run.launch.named for planned_run in planned)


class _SeveralRuns:
    """A line for each run that has ended: on a terminal all above the progress, elsewhere each by itself."""

    def __init__(self, planned: Sequence[PlannedRun], terminal: Terminal) -> None:
        self._count, self._terminal = len(planned), terminal
        self.lines: list[Text] = []

    def add(self, report: RunReport) -> None:
        self.lines.append(run_line(report, self._terminal.glyphs, len(self.lines) + 1, self._count))
        if not self._terminal.err.is_terminal:
            self._terminal.err.print(self.lines[-1], soft_wrap=True)

    def end(self) -> None:
        """Nothing is drawn above any more."""
        if self._terminal.err.is_terminal and self.lines:
            self._terminal.err.print(*self.lines, sep="\n", soft_wrap=True)
