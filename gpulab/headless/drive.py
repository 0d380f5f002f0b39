"""Drives one live run to its end with its progress on the terminal, while signals only stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic

from gpulab.core.events import StageStarted
from gpulab.core.statuses import ExitCode, Stage
from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import part
from gpulab.headless.output import Terminal
from gpulab.report.live import live_run
from gpulab.session.drive import Interrupts, drive_to_end
from gpulab.session.run import Run
from gpulab.session.run_files import kept_elsewhere
from gpulab.session.session import Session

_BRIEF = (Stage.START, Stage.TEARDOWN)


@contextmanager
def progress_of(terminal: Terminal, before: Sequence[Text] = ()) -> Iterator[Callable[[Run], None]]:
    """A function to be called with the run at every tick; `before` are lines above it."""
    if not terminal.err.is_terminal:
        yield PlainProgress(partial(terminal.note, style="dim")).show
        return
    from rich.live import Live as Display

    lines = list(before)
    with Display(console=terminal.err, auto_refresh=False, transient=True) as live:
        terminal.err.show_cursor()  # which a shell that Ctrl+Z gives its place would lack

        def show(run: Run) -> None:
            panels = _panels(run, terminal, len(lines))
            live.update(Group(*lines, panels), refresh=True)

        yield show


def _panels(run: Run, terminal: Terminal, lines_above: int) -> Block:
    """The panels of a run, in what the terminal has below some lines and above its last."""
    width, height = terminal.err.size
    height = max(4, min(30, height - lines_above - 1))
    live = live_run(run.report, run.state)
    return part("live.progress:progress_view", live, width=width, height=height) or ""


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
        is_long = state.stage in (Stage.MEASURE, Stage.PROFILE, Stage.COUNTERS)
        due = is_long and monotonic() - self._shown >= 5.0
        if state.outcome is None and (position != self._last or due) and state.stage not in _BRIEF:
            self._last, self._shown = position, monotonic()
            report = run.report
            if report.progress.verdict_stands and not self._verdict_shown:
                self._verdict_shown = True
                for line in part("live.progress:verdict_lines", report) or ():
                    self._show_line(line)
            if line := part("live.progress:one_line", live_run(report, state)):
                self._show_line(line)


def drive(
    live: Session,
    interrupts: Interrupts,
    terminal: Terminal,
    *,
    before: Sequence[Text] = (),
    last: bool = True,
) -> Run:
    """A run that was started after `interrupts` was entered, once it has ended; what was measured
    before a signal stays.

    `before`: lines above the progress, where it is redrawn. After the `last` run a signal ends the
    program: all that is left to do is to print.
    """
    interrupts.stop_with(live.cancel)
    if note := kept_elsewhere(live.path):
        terminal.note(note)
    with progress_of(terminal, before) as progress:
        run = drive_to_end(live, [progress])
    interrupted = run.report.exit_code == ExitCode.INTERRUPTED
    if last or interrupted:
        interrupts.end(answered=interrupted)
    return run
