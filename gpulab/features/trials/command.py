"""`--run FILE:function --try`: every fix that applies to a step, or those named, one by one, then
all that gained together. `--run WHAT --what-if`: what each part of a step would gain.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from gpulab.core.jobs import RunRequest
from gpulab.core.statuses import ExitCode
from gpulab.draw.blocks import Block
from gpulab.features.trials.fixes import gaining
from gpulab.features.trials.runs import Fixes, Parts
from gpulab.features.trials.view import delayed, tried
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

T = TypeVar("T", Fixes, Parts)


def try_fixes(names: Sequence[str], options: Options) -> int:
    """Measure them, print the table, and keep the scenario where it was asked for; returns the exit
    code.
    """
    if options.keep and options.keep.exists():
        raise UsageError(f"--keep {options.keep}: it exists, and files are never overwritten")
    launch = _launch(names, options, "--try takes one function: --run FILE:function --try")
    paths = _paths(launch, options, "fixes", "together")
    terminal = _open(options, f"{names[0]}: analyzing a step")
    look_at = partial(Fixes, launch, options, names=names_in(options.try_fixes))
    with Interrupts() as interrupts:
        fixes = _looked(look_at, interrupts, terminal)
        if isinstance(fixes, ExitCode):
            return fixes
        first = _measure(fixes.request(), paths[0], interrupts, terminal, last=False)
        gained = gaining(first.fixes)
        together = None
        if len(gained) > 1 and first.exit_code != ExitCode.INTERRUPTED:
            request = fixes.together(gained)
            together = _measure(request, paths[1], interrupts, terminal, last=True)
        interrupts.end()
    reports = [first, together] if together else [first]
    code = _answer(reports, tried(first, together), terminal, options)
    if options.keep:
        write_scenario("--keep", options.keep, fixes.text(gained))
        shown = shlex.quote(str(options.keep))
        terminal.say(f"wrote {options.keep}; measure it: gpulab --run {shown}")
    return code


def what_if(names: Sequence[str], options: Options) -> int:
    """Measure it and print the table; returns the exit code."""
    launch = _launch(names, options, "--what-if takes one scenario or function")
    (path,) = _paths(launch, options, "what-if")
    terminal = _open(options, f"{names[0]}: looking at the parts of a step")
    look_at = partial(Parts, launch, options, given=options.what_if or "")
    with Interrupts() as interrupts:
        parts = _looked(look_at, interrupts, terminal)
        if isinstance(parts, ExitCode):
            return parts
        report = _measure(parts.request(), path, interrupts, terminal, last=True)
    return _answer([report], delayed(report), terminal, options)


def _launch(names: Sequence[str], options: Options, takes: str) -> Launch:
    say_sharing(options)
    if len(names) != 1:
        raise UsageError(takes)
    return single_launch(names[0])


def _paths(launch: Launch, options: Options, *names: str) -> list[Path]:
    """Return where the run files go."""
    first = options.output
    if first is None:
        return [default_path(f"{launch.label}-{name}", options.share) for name in names]
    paths = [first, *(first.with_stem(f"{first.stem}-{name}") for name in names[1:])]
    for path in paths:
        check_run_file(path)
    return paths


def _open(options: Options, note: str) -> Terminal:
    terminal = open_terminal(ascii_only=options.ascii, json_on_stdout=options.json_on_stdout)
    terminal.note(note, "dim")
    return terminal


def _looked(
    look_at: Callable[[Look], T], interrupts: Interrupts, terminal: Terminal
) -> T | ExitCode:
    """What was seen of a step; an exit code where that leaves nothing to measure."""
    look = Look()
    interrupts.stop_with(look.cancel)
    try:
        seen = look_at(look)
    except StoppedError:
        interrupts.end(answered=True)
        return ExitCode.INTERRUPTED
    if seen.able:
        return seen
    terminal.say(seen.NOTHING)
    for name, reason in seen.why_not.items():
        terminal.say(f"  {name}: {reason}")
    return ExitCode.MEASURED


def _measure(
    request: RunRequest, path: Path, interrupts: Interrupts, terminal: Terminal, *, last: bool
) -> RunReport:
    report = drive(start(request, path), interrupts, terminal, last=last).report
    show_failures(report, terminal)
    return report


def _answer(
    reports: list[RunReport], table: Block | None, terminal: Terminal, options: Options
) -> int:
    if options.verbose:
        for report in reports:
            show_report(report, terminal, options)
    terminal.show(header(reports[0]))
    terminal.say("")
    if table is not None:
        terminal.show(table)
    terminal.say("")
    for report in reports:
        if report.run_file:
            terminal.say(f"run file: {report.run_file}")
    command = combine(reports, reports[0].environment, [], None)
    if options.json:
        write_json(command, options.json)
    return command.exit_code
