"""All runs of this machine: looked for, opened again, and two of them compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.console import Group, RenderableType
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input

from gpulab.protocol.run_file import RunFileError, read_run_file
from gpulab.report.build import build_report
from gpulab.report.past_run import PastRun
from gpulab.report.report import RunReport
from gpulab.report.state import fold_all
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import at_home, state_folder
from gpulab.tui.panels.history_list import HistoryList
from gpulab.tui.panels.pane import Pane
from gpulab.tui.screens.page import Page
from gpulab.views.pages.compare import compare_view
from gpulab.views.pages.history import facts, others_on_one_axis
from gpulab.views.results import failures, result
from gpulab.views.text import Glyphs

_BELOW = 9
"""Rows of what the run under the cursor stands among."""


class HistoryScreen(Screen[None]):
    """The list, and below it the runs of the same scenario on one axis."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open"),
        Binding("c", "compare", "compare"),
        Binding("slash", "search", "search"),
        Binding("escape", "back", "back"),
        Binding("q", "app.quit", show=False),
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._list = HistoryList(glyphs)
        self._runs: Sequence[PastRun] = ()
        self._message = "reading"

    def compose(self) -> ComposeResult:
        yield Pane(id="status")
        bar = Input(placeholder="scenario, verdict, device, date", id="search", compact=True)
        bar.display = False
        yield bar
        yield self._list
        yield Pane(id="below")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        for name in ("#status", "#below"):
            self.query_one(name, Pane).can_focus = False
        self.query_one("#below").styles.height = _BELOW
        self._list.focus()
        self._show_status()
        self.run_worker(self._read, thread=True)

    def _read(self) -> None:
        runs = HistoryIndex(state_folder()).runs()
        self.app.call_from_thread(self._fill, runs)

    def _fill(self, runs: Sequence[PastRun]) -> None:
        self._runs, self._message = runs, ""
        self._list.fill(runs)

    @on(HistoryList.Moved)
    def _show_below(self) -> None:
        below, run = self.query_one("#below", Pane), self._list.chosen
        self._show_status()
        if run is None:
            below.show("")
            return
        width, height = below.scrollable_content_region.width, _BELOW - 1
        drawn = others_on_one_axis(self._runs, run, self._glyphs, width=width, height=height)
        about = Text(self._glyphs(facts(run)), "dim", no_wrap=True, overflow=self._glyphs.overflow)
        below.show(Group(about, drawn))

    def _show_status(self) -> None:
        shown, every = self._list.counts
        message = self._message or (f"{every} runs" if shown == every else f"{shown} of {every} runs")
        line = self._glyphs(f" gpulab · history · {message} · {at_home(state_folder() / 'runs')}")
        text = Text(line, no_wrap=True, overflow=self._glyphs.overflow)
        text.pad_right(max(0, self.size.width - text.cell_len))
        self.query_one("#status", Pane).show(text)

    def action_search(self) -> None:
        bar = self.query_one(Input)
        bar.display = True
        bar.focus()

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        self._list.show_only(event.value)

    @on(Input.Submitted)
    def _leave_search(self) -> None:
        self._list.focus()

    def action_back(self) -> None:
        """Leave the search, then the screen."""
        bar = self.query_one(Input)
        if bar.display:
            bar.value, bar.display = "", False
            self._list.focus()
        else:
            self.dismiss()

    def action_open(self) -> None:
        """Show the run under the cursor as it was shown when it ended."""
        if (run := self._list.chosen) is not None and (report := self._report(run)) is not None:
            self._page(run.scenario, lambda width: _opened(report, self._glyphs))

    def action_compare(self) -> None:
        """Put the two marked runs beside each other; of one that is marked, with the one under the cursor."""
        both = [*self._list.marked]
        if len(both) == 1 and self._list.chosen is not None and self._list.chosen not in both:
            both.append(self._list.chosen)
        if len(both) != 2:
            self._message = "space marks two runs, c compares them"
            return self._show_status()
        reports = [self._report(run) for run in sorted(both, key=lambda run: run.at)]
        first, second = reports
        if first is not None and second is not None:
            self._page("A and B", lambda width: compare_view(first, second, self._glyphs, width=width))

    def _report(self, run: PastRun) -> RunReport | None:
        try:
            return build_report(fold_all(read_run_file(Path(run.run_file)).events), run.run_file)
        except RunFileError as error:
            self._message = str(error)
        except OSError as error:
            self._message = f"{error.strerror or error}: {at_home(Path(run.run_file))}"
        self._show_status()
        return None

    def _page(self, title: str, content: Callable[[int], RenderableType]) -> None:
        self.app.push_screen(Page(f"history ▸ {title}", content, self._glyphs))


def _opened(report: RunReport, glyphs: Glyphs) -> RenderableType:
    file = Text(glyphs(f"run file: {at_home(Path(report.run_file))}"), "dim")
    return Group(result(report, glyphs, verbose=True), file, failures(report, glyphs))
