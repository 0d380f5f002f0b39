"""`--run WHAT --what-if`: what each part of one step would gain, measured by delaying it."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.jobs import StepPart
from gpulab.core.statuses import ExitCode
from gpulab.features.trials.runs import Parts
from gpulab.features.trials.view import NOTHING_TO_DELAY
from gpulab.features.trials.view import what_if as table
from gpulab.headless.drive import drive
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
from gpulab.session.drive import Interrupts, StoppedError
from gpulab.session.launch import single_launch, start
from gpulab.session.look import Look
from gpulab.session.run_files import default_path
from gpulab.show.view import header


def what_if(names: Sequence[str], options: Options) -> int:
    """Measure it and print the table; returns the exit code."""
    say_sharing(options)
    if len(names) != 1:
        raise UsageError("--what-if takes one scenario or function")
    launch = single_launch(names[0])
    path = options.output or default_path(f"{launch.label}-what-if", options.share)
    if options.output:
        check_run_file(path)
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    terminal.note(f"{names[0]}: looking at the parts of a step", "dim")
    with Interrupts() as interrupts:
        look = Look()
        interrupts.stop_with(look.cancel)
        try:
            parts = Parts(launch, options, look, options.what_if or "")
        except StoppedError:
            interrupts.end(answered=True)
            return ExitCode.INTERRUPTED
        if not parts.able:
            _say_nothing_to_delay(parts.all, terminal)
            return ExitCode.MEASURED
        report = drive(start(parts.request(), path), interrupts, terminal)
    show_failures(report, terminal)
    _show(report, terminal, options)
    command = combine([report], report.environment, [], None)
    if options.json:
        write_json(command, options.json)
    return command.exit_code


def _say_nothing_to_delay(parts: Sequence[StepPart], terminal: Terminal) -> None:
    terminal.say(NOTHING_TO_DELAY)
    for part in parts:
        terminal.say(f"  {part.name}: {part.why_not}")


def _show(report: RunReport, terminal: Terminal, options: Options) -> None:
    if options.verbose:
        show_report(report, terminal, options)
    else:
        terminal.show(header(report))
        terminal.say("")
        if report.what_if is not None:
            terminal.show(table(report.what_if))
        terminal.say("")
    if report.run_file:
        terminal.say(f"run file: {report.run_file}")
