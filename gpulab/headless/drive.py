"""Drives one live run to its end with its progress on the terminal, while signals only stop it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from gpulab.headless.progress import progress_of
from gpulab.headless.terminal import Terminal
from gpulab.protocol.events import AnyEvent
from gpulab.report.exit_codes import ExitCode
from gpulab.report.report import RunReport
from gpulab.session.drive import drive_to_end
from gpulab.session.interrupts import Interrupts
from gpulab.session.run import Run
from gpulab.session.source import Live


def drive(
    live: Live,
    interrupts: Interrupts,
    terminal: Terminal,
    required_speedup: float | None = None,
    *,
    before: Sequence[Text] = (),
    watchers: Sequence[Callable[[Run], None]] = (),
    listeners: Sequence[Callable[[Sequence[AnyEvent]], None]] = (),
    last: bool = True,
) -> RunReport:
    """The report of a run that was started after `interrupts` was entered; what was measured before a signal stays.

    `before`: lines of earlier runs above the progress. After the `last` run a signal ends the program: all that is left
    to do is to print.
    """
    interrupts.stop_with(live.cancel)
    with progress_of(terminal, before) as progress:
        report = drive_to_end(live, required_speedup, [progress, *watchers], listeners).report
    interrupted = report.exit_code == ExitCode.INTERRUPTED
    if last or interrupted:
        interrupts.end(answered=interrupted)
    return report
