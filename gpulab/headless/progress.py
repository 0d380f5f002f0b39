"""Progress on stderr: lines that are redrawn on a terminal, and a few plain ones elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from rich.text import Text

from gpulab.headless.terminal import Terminal
from gpulab.model.state import RunState
from gpulab.views import progress

_PLAIN_EVERY_S = 5.0


@contextmanager
def progress_of(terminal: Terminal, done: Sequence[Text] = ()) -> Iterator[Callable[[RunState], None]]:
    """A function to be called with the state at every tick; `done` are the runs before it, one view with this one."""
    if not terminal.err.is_terminal:
        yield _Plain(terminal).show
        return
    from rich.console import Group
    from rich.live import Live

    before = list(done)
    with Live(console=terminal.err, auto_refresh=False, transient=True) as live:
        yield lambda state: live.update(
            Group(*before, progress.lines(state, terminal.glyphs, monotonic())), refresh=True
        )


class _Plain:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._last: tuple[str, str | None] | None = None
        self._told = 0.0

    def show(self, state: RunState) -> None:
        at = (state.stage, state.at_variant)
        measuring = state.stage == "measure" and monotonic() - self._told >= _PLAIN_EVERY_S
        if state.outcome is None and (at != self._last or measuring) and state.stage not in ("start", "teardown"):
            self._last, self._told = at, monotonic()
            self._terminal.err.print(self._terminal.glyphs(progress.one_line(state)), style="dim", soft_wrap=True)
