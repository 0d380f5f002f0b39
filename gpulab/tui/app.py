"""The interactive lab. It starts no run by itself, and leaves none behind however it ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import App
from textual.filter import LineFilter
from textual.screen import Screen

from gpulab.catalog.catalog import Entry, catalog
from gpulab.doctor.terminal import over_ssh, shows_unicode
from gpulab.report.exit_codes import ExitCode
from gpulab.session.interrupts import Interrupts
from gpulab.session.settings import Settings, check_paths, check_settings
from gpulab.tui.driver import LabDriver, release_stop_signals
from gpulab.tui.filters import AsciiFilter, PlainFilter
from gpulab.tui.panels.pane import Pane
from gpulab.tui.runs import Starter
from gpulab.tui.screens.lab import LabScreen
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from gpulab.protocol.finding import Finding
    from gpulab.session.source import Source

_HZ, _HZ_OVER_SSH = 4, 2
_CRASHED = 1


def _start(entry: Entry, settings: Settings) -> Source | Finding:
    from gpulab.session.launch import start_entry  # what a run needs would come before the first frame

    return start_entry(entry, settings)


class LabApp(App[int]):
    """One screen over the catalog. `starter` makes the source of a run."""

    TITLE = "gpulab"
    CSS_PATH = "gpulab.tcss"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]  # noqa: RUF012

    def __init__(
        self,
        paths: Sequence[Path] = (),
        settings: Settings | None = None,
        *,
        ascii_only: bool,
        starter: Starter = _start,
    ) -> None:
        # Colours before the theme: NO_COLOR would turn the defaults into black on black.
        super().__init__(driver_class=LabDriver, ansi_color=True)
        self.interrupts = Interrupts()
        self.theme = "ansi-dark"  # the terminal's own colours, in the fewest bytes
        self.animation_level = "none"
        self._own_filters: list[LineFilter] = [PlainFilter(), *([AsciiFilter()] if ascii_only else [])]
        tick_s = 1 / (_HZ_OVER_SSH if over_ssh() else _HZ)
        self._glyphs = Glyphs(ascii_only)
        self._lab = LabScreen(catalog(paths), settings or Settings(), self._glyphs, tick_s, starter)

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), *self._own_filters]

    def get_default_screen(self) -> Screen[int]:
        return self._lab

    def action_history(self) -> None:
        """All runs of this machine."""
        from gpulab.tui.screens.history import HistoryScreen

        self.push_screen(HistoryScreen(self._glyphs))

    def action_help(self) -> None:
        """The keys, and the words that are on the screen."""
        from gpulab.tui.screens.help import help_page

        shown = "\n".join(pane.text for pane in self.screen.query(Pane) if pane.is_on_screen)
        self.push_screen(help_page(shown, self._glyphs))

    def action_edit(self) -> None:
        """Open the file of the scenario under the cursor in an editor, where it failed if it did."""
        from gpulab.tui.editor import edit

        if (entry := self._lab.chosen) is not None:
            run = self._lab.runs.of(entry.name)
            lines = [failure.line for failure in run.report.failures if failure.line] if run else []
            problem = edit(self, entry.path, lines[0] if lines else None)
            self._lab.read_again(entry)
            self._lab.say(problem or "", "bold red")

    def action_copy(self) -> None:
        """Copy the run of the scenario under the cursor as text, and keep it as a file."""
        from gpulab.tui.copying import copy

        if (entry := self._lab.chosen) is not None and (run := self._lab.runs.of(entry.name)):
            self._lab.say(copy(self, run.report))

    def action_predict(self) -> None:
        """Ask how many times as fast it will be, then run it."""
        from gpulab.tui.screens.predict import PredictScreen

        entry = self._lab.chosen
        if entry is None or len(entry.row.variants) < 2:
            return

        def run(guesses: list[float] | None) -> None:
            if guesses:
                self._lab.runs.guesses[entry.name] = guesses
                self._lab.action_run()

        self.push_screen(PredictScreen(entry.row, self._glyphs), run)

    async def action_quit(self) -> None:
        """Ctrl+Q, which is Textual's own, leaves nothing behind either."""
        self._lab.quit()

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            self._lab.runs.cancel()
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._interrupt)

        self.interrupts.stop_with(wake)

    def _interrupt(self) -> None:
        """Quit; where the terminal is gone, at once: Textual would wait for ever for its last bytes to be written."""
        if os.isatty(sys.stdin.fileno()):
            self._lab.quit()
        else:
            self._lab.runs.end()
            os._exit(ExitCode.INTERRUPTED)

    def run_on_terminal(self) -> int:
        """Run it to its end; returns the exit code. What a signal or an error ends leaves nothing behind either."""
        with self.interrupts as interrupts:
            try:
                self.run()
            finally:
                self._lab.runs.end()
                release_stop_signals()
            interrupts.end(answered=True)
        if self.return_code is None:  # nobody asked for its end
            return _CRASHED
        return self.return_code or (0 if interrupts.received is None else ExitCode.INTERRUPTED)


def open_lab(paths: Sequence[str], settings: Settings, *, ascii_only: bool) -> int:
    """Open the screen on the terminal; returns the exit code. UsageError where a path is not there."""
    places = [Path(path) for path in paths]
    check_paths(places)
    check_settings(settings)
    return LabApp(places, settings, ascii_only=ascii_only or not shows_unicode()).run_on_terminal()
