"""`--replay` without the screen: what a run printed when it was made, from its file alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from textwrap import wrap

from gpulab.catalog.recordings import recorded_name, recorded_on, recordings
from gpulab.core.jobs import Calibrate, Follow, RunRequest, TimedJob
from gpulab.core.limits import TELEMETRY_ON
from gpulab.core.statuses import ExitCode
from gpulab.features import present
from gpulab.features.goodput.job import with_from_start
from gpulab.headless.export import export
from gpulab.headless.output import Terminal, open_terminal, write_json
from gpulab.headless.printed import (
    show_calibration,
    show_failures,
    show_markdown,
    show_program,
    show_report,
)
from gpulab.options import Options, UsageError
from gpulab.report.commands import CalibrationReport, CommandReport, calibration_report, combine
from gpulab.report.report import RunReport
from gpulab.session.run import Run
from gpulab.session.saved import open_run
from gpulab.show.display import as_file


def replay(name: str, options: Options) -> int:
    """Print and write what the run gave; returns its exit code. Without a name: what ships.
    UsageError.
    """
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    if not name:
        terminal.say(*_what_ships(recordings(), terminal.results.width))
        return 0
    run = open_run(name)
    check_flags(run, options)
    report = run.report
    if view := present("replay.view"):
        origin = view.Origin(report.device, report.environment, report.at)
        terminal.note(f"recorded on {view.made_on(origin)}", "dim")
    return show_run(run, options, terminal)


_OPERATION_FLAGS = ("checklist", "top")


def check_flags(run: Run, options: Options) -> None:
    """UsageError for flags that would change nothing."""
    match run.state.job:
        case Follow():
            kind = "a followed program"
        case Calibrate():
            kind = "a calibration"
        case _:
            return
    operations = () if isinstance(run.state.job, Follow) else _OPERATION_FLAGS
    for flag in options.given(*("raw", "markdown", "from_start"), *operations):
        raise UsageError(f"{run.source.path} is of {kind}: {flag} does not apply to it")


def show_run(run: Run, options: Options, terminal: Terminal) -> int:
    """Print and write what a run gave; returns its exit code."""
    options = _original_flags(options, run.state.request)
    report = run.report
    if options.from_start is not None:
        report = with_from_start(report, options.from_start)
    show_failures(report, terminal)
    job = run.state.job
    match job:
        case Calibrate():
            show_calibration(report, terminal, links_only=bool(job.ranks))
        case Follow():
            show_program(report, terminal, options)
        case _ if options.markdown:
            show_markdown(report, terminal)
        case _:
            show_report(report, terminal, options)
    if options.json:
        write_json(_command(run, report), options.json)
    targets = [target for target in (options.export, options.plot) if target]
    export([(partial(as_file, [report]), target) for target in targets], terminal)
    return ExitCode.FAILED if report.exit_code is None else report.exit_code


def _command(run: Run, report: RunReport) -> CommandReport | CalibrationReport:
    """The outermost JSON, as the mode that made the run writes it."""
    if isinstance(run.state.job, Calibrate):
        return calibration_report(report)
    return combine([report], report.environment)


def _original_flags(options: Options, request: RunRequest | None) -> Options:
    """With those flags of the run that chose what to print."""
    job = request.job if request else None
    if not isinstance(job, TimedJob) or request is None:
        return options
    telemetry = request.telemetry
    profile = request.profile
    return replace(
        options,
        memory=profile is not None and profile.memory is not None,
        ncu=job.counters.variant if job.counters else None,
        retune=job.retune,
        counters=request.counters_s,
        telemetry=None if telemetry == TELEMETRY_ON and not job.quick else telemetry,
        from_start=0 if options.from_start is None and job.from_start else options.from_start,
    )


def _what_ships(paths: Sequence[Path], width: int) -> list[str]:
    """For each device a heading, and the names that `--replay` takes."""
    lines = []
    for device, of_device in groupby(paths, recorded_on):
        names = " ".join(map(recorded_name, of_device))
        lines.append(f"recorded on {device}")
        lines += wrap(names, width, initial_indent="  ", subsequent_indent="  ")
    return lines or ["no recording ships with this gpulab"]
