"""Drives one live run to its end with its progress on the terminal, while signals only stop it; and
prints what it leaves: its result, its roofline, and where its file is.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from rich.text import Text

from gpulab.core.events import StageStarted
from gpulab.core.run_file import RunFileError
from gpulab.core.statuses import ExitCode, GroupBy, Stage
from gpulab.features.findings.checklist_view import checklists
from gpulab.features.goodput.operation_table import MOST_ROWS, TableChoice
from gpulab.features.goodput.operations import full_tables, operations
from gpulab.features.goodput.view import goodput, job_goodput, traces
from gpulab.features.live import progress
from gpulab.features.live.panel import live_run
from gpulab.features.memory.view import memory
from gpulab.features.roofline.report import (
    NO_ROOFS,
    lacks_roofs,
    roofline_of,
    roofline_of_operations,
)
from gpulab.features.roofline.view import causes, reasons, roofline_view
from gpulab.features.telemetry.view import solo_runs
from gpulab.features.tuning.view import tunings
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal
from gpulab.report.raw_times import RAW_NOTE, markdown, raw_table
from gpulab.report.report import RunReport
from gpulab.report.results import failures, header, result
from gpulab.report.short_result import ShortResult
from gpulab.report.view import comparison_table, failure_causes, inconclusive, note_lines
from gpulab.session.drive import Interrupts, drive_to_end
from gpulab.session.run import Run
from gpulab.session.session import Session

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live as Display

_SHOW_CURSOR, _HIDE_CURSOR = b"\x1b[?25h", b"\x1b[?25l"
_PLAIN_EVERY_S = 5.0
_HEIGHT, _MOST_WIDTH = 24, 160
_FEWEST_ROWS, _MOST_ROWS = 4, 30
_BRIEF = (Stage.START, Stage.TEARDOWN)


@contextmanager
def progress_of(terminal: Terminal, before: Sequence[Text] = ()) -> Iterator[Callable[[Run], None]]:
    """A function to be called with the run at every tick; `before` are lines above it."""
    if not terminal.err.is_terminal:
        yield PlainProgress(partial(terminal.note, style="dim")).show
        return
    from rich.console import Group
    from rich.live import Live as Display

    lines = list(before)
    live = Display(console=terminal.err, auto_refresh=False, transient=True)
    with _cursor_while_stopped(live), live:

        def show(run: Run) -> None:
            live.update(Group(*lines, _panels(run, terminal, len(lines))), refresh=True)

        yield show


def _panels(run: Run, terminal: Terminal, lines_above: int) -> RenderableType:
    """The panels of a run, in what the terminal has below some lines and above its last."""
    width, height = terminal.err.size
    height = max(_FEWEST_ROWS, min(_MOST_ROWS, height - lines_above - 1))
    return progress.progress_view(live_run(run.report, run.state), width=width, height=height)


@contextmanager
def _cursor_while_stopped(live: Display) -> Iterator[None]:
    """Ctrl+Z gives the shell a cursor, which the redrawn lines hide."""

    def write(text: bytes) -> None:
        with suppress(OSError):
            os.write(live.console.file.fileno(), text)

    def stop(*_: object) -> None:
        write(_SHOW_CURSOR)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)  # returns once it goes on
        signal.signal(signal.SIGTSTP, stop)
        if live.is_started:
            write(_HIDE_CURSOR)

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTSTP) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)


class PlainProgress:
    """A line for every stage, and one every few seconds while it measures, or profiles."""

    def __init__(self, show_line: Callable[[str], None]) -> None:
        self._show_line = show_line
        self._last: tuple[str, str | None] | None = None
        self._shown = 0.0
        self._verdict_shown = False

    def show(self, run: Run) -> None:
        state = run.state
        started = state.last(StageStarted)
        position = (state.stage, started.variant if started else None)
        is_long = state.stage in (Stage.MEASURE, Stage.PROFILE)
        due = is_long and monotonic() - self._shown >= _PLAIN_EVERY_S
        if state.outcome is None and (position != self._last or due) and state.stage not in _BRIEF:
            self._last, self._shown = position, monotonic()
            report = run.report
            if report.progress.verdict_stands and not self._verdict_shown:
                self._verdict_shown = True
                for line in progress.verdict_lines(report):
                    self._show_line(line)
            self._show_line(progress.one_line(report))


def drive(
    live: Session,
    interrupts: Interrupts,
    terminal: Terminal,
    required_speedup: float | None = None,
    *,
    before: Sequence[Text] = (),
    last: bool = True,
) -> RunReport:
    """The report of a run that was started after `interrupts` was entered; what was measured before
    a signal stays.

    `before`: lines above the progress, where it is redrawn. After the `last` run a signal ends the
    program: all that is left to do is to print.
    """
    interrupts.stop_with(live.cancel)
    with progress_of(terminal, before) as progress:
        report = drive_to_end(live, required_speedup, [progress]).report
    interrupted = report.exit_code == ExitCode.INTERRUPTED
    if last or interrupted:
        interrupts.end(answered=interrupted)
    return report


def show_failures(report: RunReport, terminal: Terminal) -> None:
    """Print to stderr what a failure left: before the result, which ends with the cause."""
    terminal.err.print(failures(report), end="", soft_wrap=True)


def show_report(report: RunReport, terminal: Terminal, options: Options) -> None:
    """Print the result of one run: in short, or all of it."""
    tables = _tables_of_operations(report, options)
    if options.verbose:
        terminal.show(result(report, with_operations=not tables))
        for table in tables:
            terminal.say("")
            terminal.show(table)
        if any(variant.roofline for variant in report.variants):
            show_roofline(report, terminal)
        if undeclared := causes(report.variants):
            terminal.show(undeclared)
        show_operations_on_roofs(report, terminal)
    else:
        asked_for = [*_asked_for(report, options), *tables]
        terminal.show(ShortResult(report, asked_for, with_operations=not tables))
    if options.checklist:
        terminal.show(checklists(report))
        terminal.say("")
    if report.run_file:
        terminal.say(f"run file: {report.run_file}")
    terminal.say("")
    if options.raw:
        show_raw(report, terminal)
        terminal.say("")


def _tables_of_operations(report: RunReport, options: Options) -> list[RenderableType]:
    """As flags ask for them; none where no flag does."""
    if not options.asks_for_operations:
        return []
    choice = TableChoice(
        most=options.top or MOST_ROWS,
        sort=options.sort,
        group=options.group_by or GroupBy.OPERATION,
    )
    nothing = "no operations were recorded: no profile (off, a smoke run, or less than a second)"
    return full_tables(report, choice) or [Text(nothing, "yellow")]


def show_raw(report: RunReport, terminal: Terminal) -> None:
    """Print the distribution of the raw times."""
    with _of_run_file(terminal):
        terminal.show(raw_table(report))
        terminal.results.print(RAW_NOTE, style="dim", soft_wrap=not terminal.results.is_terminal)


def show_markdown(report: RunReport, terminal: Terminal) -> None:
    """Print the comparison, what weakens it, and the raw times in Markdown."""
    heading, *facts = header(report).plain.split("\n")
    terminal.say(f"**{heading}**", "", *facts, "")
    for line, _ in failure_causes(report):
        terminal.say(line, "")
    if report.timed:
        terminal.say(*markdown(comparison_table(report)), "")
        for line, _ in [*inconclusive(report), *note_lines(report)]:
            terminal.say(f"- {line}")
        terminal.say("")
        with _of_run_file(terminal):
            terminal.say(*markdown(raw_table(report)), "", RAW_NOTE, "")


@contextmanager
def _of_run_file(terminal: Terminal) -> Iterator[None]:
    try:
        yield
    except RunFileError as error:
        terminal.note(str(error), "yellow")


def _asked_for(report: RunReport, options: Options) -> Iterator[RenderableType]:
    """What flags of the command ask for by name."""
    views: list[Callable[[RunReport], RenderableType | None]] = []
    if options.memory:
        views.append(memory)
    if options.retune:
        views.append(tunings)
    if options.telemetry not in (None, "off"):
        views.append(solo_runs)
    if options.profile in ("on", "all") and not report.functions:
        views += [goodput] if options.asks_for_operations else [goodput, operations]
    views += [traces, job_goodput]
    for view in views:
        content = view(report)
        if content is not None:
            yield content


def show_roofline(report: RunReport, terminal: Terminal) -> None:
    """Print the roofline of a run, as wide as the terminal is."""
    roofline = roofline_of(report)
    if roofline is None:
        return
    console = terminal.results
    width = min(console.width, _MOST_WIDTH)
    drawn = roofline_view(roofline, width=width, height=_HEIGHT)
    console.print("", drawn, sep="\n", soft_wrap=True)
    terminal.show(reasons(roofline.points))


def show_operations_on_roofs(report: RunReport, terminal: Terminal) -> None:
    """Print the operations of each profiled variant below the roofs."""
    console = terminal.results
    width = min(console.width, _MOST_WIDTH)
    for variant in report.variants:
        roofline = roofline_of_operations(report, variant.name)
        if roofline is None and lacks_roofs(variant):
            terminal.say("", f"operations of {variant.name}: {NO_ROOFS}")
        if roofline is None:
            continue
        drawn = roofline_view(roofline, width=width, height=_HEIGHT)
        head = Text(f"operations of {variant.name}", "bold")
        console.print("", head, drawn, sep="\n", soft_wrap=True)
