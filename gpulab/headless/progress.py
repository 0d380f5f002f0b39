"""Progress on stderr: lines that are redrawn on a terminal, and a few plain ones elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from rich.text import Text

from gpulab.headless.terminal import Terminal
from gpulab.protocol.statuses import Stage
from gpulab.report.report import RunReport
from gpulab.session.run import Run
from gpulab.views import progress

_PLAIN_EVERY_S = 5.0
_BRIEF = (Stage.START, Stage.TEARDOWN)


@contextmanager
def progress_of(terminal: Terminal, before: Sequence[Text] = ()) -> Iterator[Callable[[Run], None]]:
    """A function to be called with the run at every tick; `before` are lines of earlier runs, one view with this."""
    if not terminal.err.is_terminal:
        yield _PlainProgress(terminal).show
        return
    from rich.console import Group
    from rich.live import Live

    lines = list(before)
    with Live(console=terminal.err, auto_refresh=False, transient=True) as live:
        yield lambda run: live.update(Group(*lines, progress.progress_view(run.report, terminal.glyphs)), refresh=True)


class _PlainProgress:
    """A line for every stage, and one every few seconds while it measures."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._last: tuple[str, str | None] | None = None
        self._shown = 0.0

    def show(self, run: Run) -> None:
        state = run.state
        position = (state.stage, state.stage_variant)
        due = state.stage == Stage.MEASURE and monotonic() - self._shown >= _PLAIN_EVERY_S
        if state.outcome is None and (position != self._last or due) and state.stage not in _BRIEF:
            self._last, self._shown = position, monotonic()
            self._print(run.report)

    def _print(self, report: RunReport) -> None:
        line = progress.one_line(report)
        self._terminal.err.print(self._terminal.glyphs(line), style="dim", soft_wrap=True)
