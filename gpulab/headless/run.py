"""`--run`: one scenario, several, all of them, or plain functions; a table, JSON, and an exit code."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from gpulab.headless.drive import drive
from gpulab.headless.options import Options
from gpulab.headless.output import write_json
from gpulab.headless.plot import plot
from gpulab.headless.run_plan import PlannedRun, plan_runs
from gpulab.headless.show import show_failures, show_report
from gpulab.headless.terminal import Terminal, open_terminal
from gpulab.protocol.jobs import RunRequest
from gpulab.report.command_report import Sweep
from gpulab.report.commands import combine, sweep_of
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport
from gpulab.session.interrupts import Interrupts
from gpulab.session.launch import start
from gpulab.version import __version__
from gpulab.views.summary import run_line, summary
from gpulab.views.sweep import sweep_view


def run(names: Sequence[str], options: Options) -> int:
    """Run them one after the other and print what came out; returns the exit code."""
    planned = plan_runs(names, options)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    several = _SeveralRuns(planned, terminal) if _is_library(planned, options) else None
    reports: list[RunReport] = []
    environment: dict[str, str | None] = {"gpulab": __version__, "torch": None, "driver": None}
    environment["python"] = platform.python_version()
    with Interrupts() as interrupts:  # a signal between two runs stops the second
        for number, planned_run in enumerate(planned, 1):
            if len(planned) > 1 and not (several and terminal.err.is_terminal):
                terminal.err.print(f"{planned_run.launch.label} ({number} of {len(planned)})", style="bold")
            report = planned_run.request
            if isinstance(report, RunRequest):
                before, last = several.lines if several else (), number == len(planned)
                live = start(report, planned_run.path)
                report = drive(live, interrupts, terminal, options.required_speedup, before=before, last=last)
                show_failures(report, terminal)
            reports.append(report)
            environment = report.environment or environment
            if several:
                several.add(report)
            elif planned_run.launch.point is None:
                show_report(report, terminal, verbose=options.verbose)
            if report.exit_code == ExitCode.INTERRUPTED:
                break
    sweeps = _sweeps(planned, reports)
    if options.sweep is not None:
        _show_sweeps(sweeps, terminal)
    elif len(reports) > 1:
        terminal.results.print(summary(reports, terminal.glyphs))
        if several:
            terminal.say(f"run files: {planned[0].path.parent}")
    command = combine(reports, environment, [sweep for sweep, _ in sweeps])
    if options.json:
        write_json(command, options.json)
    measured = ((planned_run.picture, report) for planned_run, report in zip(planned, reports, strict=False))
    plot([(report, picture) for picture, report in measured if picture and report.run_file], terminal)
    return command.exit_code


def _is_library(planned: Sequence[PlannedRun], options: Options) -> bool:
    """Of a whole library only what came out is shown: everything else is in the run files."""
    return len(planned) > 1 and options.sweep is None and not any(planned_run.launch.named for planned_run in planned)


class _SeveralRuns:
    """The lines of the runs of a library that have ended: on a terminal above the progress, elsewhere one by one."""

    def __init__(self, planned: Sequence[PlannedRun], terminal: Terminal) -> None:
        self._count, self._shown = len(planned), terminal
        self.lines: list[Text] = []

    def add(self, report: RunReport) -> None:
        err = self._shown.err
        self.lines.append(run_line(report, self._shown.glyphs, len(self.lines) + 1, self._count))
        last = len(self.lines) == self._count or report.exit_code == ExitCode.INTERRUPTED
        if last or not err.is_terminal:
            err.print(*(self.lines if err.is_terminal else self.lines[-1:]), sep="\n", soft_wrap=True)


def _sweeps(planned: Sequence[PlannedRun], reports: Sequence[RunReport]) -> list[tuple[Sweep, list[RunReport]]]:
    """The runs of every scenario that is swept; of those that were made, should they have been interrupted."""
    groups: dict[tuple[Path, str], list[RunReport]] = {}
    for planned_run, report in zip(planned, reports, strict=False):
        if point := planned_run.launch.point:
            groups.setdefault((planned_run.launch.entry.path, point[0]), []).append(report)
    return [(sweep_of(parameter, runs), runs) for (_, parameter), runs in groups.items()]


def _show_sweeps(sweeps: Sequence[tuple[Sweep, list[RunReport]]], terminal: Terminal) -> None:
    for sweep, reports in sweeps:
        width = terminal.results.width
        terminal.results.print(sweep_view(sweep, reports, terminal.glyphs, width), "", sep="\n")
        terminal.say(*(f"run file: {report.run_file}" for report in reports if report.run_file))
