"""All runs of this machine: looked for, opened again, and two of them compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.coordinate import Coordinate
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widgets import DataTable, Input
from textual.worker import get_current_worker

from gpulab.catalog.catalog import Entry
from gpulab.core.units import plural
from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import needed, present, taken_out
from gpulab.features.history.trend import trend_around
from gpulab.features.history.view import (
    HEADS,
    cells,
    differing,
    facts,
    search_text,
    trend_on_axis,
)
from gpulab.report.live import live_run
from gpulab.report.past import PastRun
from gpulab.report.sentences import sentence
from gpulab.session.run import Run
from gpulab.session.run_files import at_home, runs_folder
from gpulab.session.store import Store
from gpulab.show.parts import Shown, Target, on_screen
from gpulab.tui import status
from gpulab.tui.bindings import HELP
from gpulab.tui.copying import copy_drawn
from gpulab.tui.earlier import read_run
from gpulab.tui.panels.field import InputLine
from gpulab.tui.panels.pane import TextPane
from gpulab.tui.screens.lab import LabScreen
from gpulab.tui.screens.page import Page, name_box

if TYPE_CHECKING:
    from gpulab.tui.app import LabApp

MOST_LISTED = 500
"""A table of 10,000 rows takes a second."""
_WAIT_S, _AT_ONCE = 0.25, 100


class HistoryList(DataTable[Any]):
    """A row a run, with a cursor, and up to two that are marked, A and B."""

    # Not "select_cursor", whose message would come after what the next key does.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.open", show=False, tooltip="open the run: its result"),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]

    def __init__(self, entries: Iterable[Entry]) -> None:
        """`entries`: the catalog, for the defaults of parameters."""
        super().__init__(id="runs", cursor_type="row")
        self._scenarios = {(str(entry.path), entry.name): entry.scenario for entry in entries}
        self._runs: Sequence[PastRun] = ()
        self.marked: list[PastRun] = []

    def on_mount(self) -> None:
        self.add_columns("", "lesson", *HEADS)

    def show(self, runs: Sequence[PastRun], chosen: PastRun | None) -> None:
        """List these, the cursor on the chosen one."""
        self.clear()
        self._runs = runs
        now = datetime.now(UTC)
        for run in runs:
            scenario = self._scenarios.get((run.path, run.scenario))
            params = differing(run, scenario) if scenario else ""
            row = (Text(run.scenario), *cells(run, now, params))
            self.add_row(self._sign(run), *row)
        self.move_cursor(row=next((at for at, run in enumerate(runs) if run is chosen), 0))

    @property
    def chosen(self) -> PastRun | None:
        return self._runs[self.cursor_row] if self._runs else None

    @property
    def text(self) -> str:
        """Return what of it is in sight."""
        return "\n".join(self.render_line(y).text for y in range(self.size.height))

    def mark(self) -> None:
        """Mark the run under the cursor, or take its mark away; a third one takes the place of B.
        The earlier one is A, as in a comparison.
        """
        run = self.chosen
        if run in self.marked:
            self.marked.remove(run)
        elif run is not None:
            self.marked = sorted([*self.marked[:1], run], key=lambda run: run.at)
        for place, each in enumerate(self._runs):
            self.update_cell_at(Coordinate(place, 0), self._sign(each))

    def _sign(self, run: PastRun) -> str:
        return next(
            (sign for sign, each in zip("AB", self.marked, strict=False) if each is run), " "
        )


class HistoryScreen(ModalScreen[None]):
    """The list, and below it what is known of the run under the cursor, and its trend."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="open the run: its result"),
        Binding("m", "mark", "mark", tooltip="mark two runs: A is the earlier one"),
        Binding("d", "compare", "compare", tooltip="compare the two marked runs"),
        # at once: what is typed next may be in the terminal already
        Binding("slash", "search", "search", priority=True, tooltip="search the runs"),
        Binding("v", "replay", "replay", tooltip="play the run under the cursor again"),
        Binding("escape", "back", "back", tooltip="leave the search, then the history"),
        HELP,
        Binding("q", "app.ask_quit", show=False, tooltip="quit"),
    ]

    def __init__(self, entries: Iterable[Entry], of: Entry | None = None) -> None:
        """`of`: on whose newest run the cursor is until it is moved."""
        super().__init__()
        self._list = HistoryList(entries)
        self._of = (str(of.path), of.name) if of is not None else None
        self._all: list[tuple[PastRun, str]] = []
        """With what one may look for, the newest first."""
        self._found: list[PastRun] = []
        self._reading, self._problem = "reading", ""

    def compose(self) -> ComposeResult:
        bar = InputLine(placeholder="scenario, verdict, device, date, parameter", id="search")
        leave = self._leave_search
        bar.on_keys = {"enter": leave, "down": leave, "escape": self.action_back}
        bar.display = False
        with Vertical(id="box", classes="box"):
            yield bar
            yield self._list
            yield TextPane(id="below")

    def on_mount(self) -> None:
        self._list.focus()
        self._say()
        self.run_worker(self._read, thread=True, group="index")

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._show_below)

    def _read(self) -> None:
        """In a thread: the index, then the run files that it lacks, but not beside a run that
        measures.
        """
        worker, lab = get_current_worker(), self._lab
        with Store() as store:
            unread = store.unread()
            runs = store.known()
            for read, path in enumerate(unread):
                self._reading = f"reading {read:,} of {len(unread):,}"
                self.call_later(self._add, runs if read % _AT_ONCE == 0 else [])
                runs = runs if read % _AT_ONCE else []
                while lab.runs.running is not None and not worker.is_cancelled:
                    time.sleep(_WAIT_S)
                if worker.is_cancelled:
                    return
                if run := store.read(path):
                    runs.append(run)
            self.call_later(self._add, runs)
        if problem := store.problem():
            self._problem = sentence(problem)
        self._reading = ""
        self.call_later(self._add, [])

    @property
    def _lab(self) -> LabScreen:
        return next(screen for screen in self.app.screen_stack if isinstance(screen, LabScreen))

    def _add(self, runs: Sequence[PastRun]) -> None:
        """The cursor stays on its run."""
        if not runs:
            self._show_below()
            return self._say()
        self._all += [(run, search_text(run)) for run in runs]
        self._all.sort(key=lambda both: both[0].at, reverse=True)
        of_entry = (run for run, _ in self._all if (run.path, run.scenario) == self._of)
        moved = self._list.cursor_row > 0
        return self._show_found(self._list.chosen if moved else next(of_entry, None))

    def _show_found(self, chosen: PastRun | None) -> None:
        """List the newest of those in which every word of the search is found."""
        words = self.query_one(InputLine).value.casefold().split()
        self._found = [run for run, text in self._all if all(word in text for word in words)]
        self._list.show(self._found[:MOST_LISTED], chosen)
        self._show_below()
        self._say()

    @on(DataTable.RowHighlighted)
    def _moved(self) -> None:
        self._say()
        self._show_below()

    def _show_below(self) -> None:
        below, run = self.query_one("#below", TextPane), self._list.chosen
        if run is not None:
            below.show(self._about(run, below.size.width, below.size.height), as_high=True)
        elif self._all:
            below.show("No run has all of these words. Esc leaves the search.")
        elif not (self._reading or self._problem):
            below.show("No run has ended on this machine yet: Esc goes back, r runs a lesson.")

    def _about(self, run: PastRun, width: int, height: int) -> Block:
        path = Text(at_home(Path(run.run_file)), "dim", overflow="fold")
        about = Group(Text(facts(run), no_wrap=True, overflow="ellipsis"), path)
        lesson = run.path, run.scenario
        runs = [each for each, _ in reversed(self._all) if (each.path, each.scenario) == lesson]
        found = trend_around(runs, run)
        if found is None:
            return Group(about, "no run of full length has a speedup: there is no trend")
        trend, count = found
        words = f"── {run.scenario}, {plural(count, 'run')} with these parameters on this device"
        head = Text(words, "bold", no_wrap=True, overflow="ellipsis")
        return Group(about, head, trend_on_axis(trend, run.at, width, max(0, height - 3)))

    def _say(self, message: str = "") -> None:
        """Show a message in the frame; without one, what is listed."""
        found, counts = len(self._found), plural(len(self._all), "run")
        if found < len(self._all):
            counts = f"{found:,} of {counts}"
        if found > MOST_LISTED:
            counts = f"the newest {MOST_LISTED} of {counts}, / searches all"
        folder = at_home(runs_folder())
        parts = ("history", counts, self._reading, self._problem, folder)
        name_box(self.query_one("#box"), message or " · ".join(part for part in parts if part))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash is typed where one types."""
        return action != "search" or not isinstance(self.focused, Input)

    def action_search(self) -> None:
        bar = self.query_one(InputLine)
        bar.display = True
        self.set_focus(bar)

    @on(Input.Changed)
    def _search(self) -> None:
        self._of = None
        self._show_found(self._list.chosen)

    def _leave_search(self) -> None:
        self.set_focus(self._list)

    def action_back(self) -> None:
        """Leave the search, then the screen."""
        bar = self.query_one(InputLine)
        if bar.display:
            bar.value, bar.display = "", False
            self._leave_search()
        else:
            self.dismiss()

    def action_mark(self) -> None:
        self._list.mark()

    @on(DataTable.RowSelected)
    def action_open(self) -> None:
        """Show the run under the cursor as it was shown when it ended."""
        if (run := self._list.chosen) is not None:
            self.run_worker(self._open(run), group="open", exclusive=True)

    def action_replay(self) -> None:
        """Play the run under the cursor again, unless one measures meanwhile."""
        run, running = self._list.chosen, self._lab.runs.running
        if running is not None:
            return self._say(status.another_runs(running))
        if run is not None:
            app = cast("LabApp", self.app)
            replay = app.show_replay(Path(run.run_file), self._say)
            self.run_worker(replay, group="open", exclusive=True)

    def action_compare(self) -> None:
        """Put the two marked runs beside each other; of one that is marked, with the one under the
        cursor.
        """
        both = [*self._list.marked]
        if len(both) == 1 and self._list.chosen is not None and self._list.chosen not in both:
            both.append(self._list.chosen)
        if present("compare") is None:
            self._say(taken_out("compare"))
        elif len(both) == len("AB"):
            self.run_worker(self._open(*both), group="open", exclusive=True)
        else:
            self._say("m marks two runs, d compares them")

    async def _open(self, *runs: PastRun) -> None:
        """One run, or two beside each other, the earlier one first."""
        opened = []
        for past in sorted(runs, key=lambda run: run.at):
            run = await asyncio.to_thread(read_run, past)
            if isinstance(run, str):
                return self._say(run)
            opened.append(run)
        self.app.push_screen(ResultPage(*opened) if len(opened) == 1 else ComparePage(opened))


class ResultPage(Page):
    """The result of a run of the past, as it was shown when it ended."""

    BINDINGS: ClassVar[list[BindingType]] = [HELP]

    def __init__(self, run: Run) -> None:
        live = live_run(run.report, run.state)

        def drawn(width: int) -> Block:
            return on_screen(Shown(run.report, Target.SCREEN, width=width, live=live))

        super().__init__(f"history ▸ {run.report.scenario}", drawn, wide=True)


class ComparePage(Page):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("plus", "all_lines", "all lines", tooltip="all lines that differ, or the first"),
        Binding("y", "copy", "copy", tooltip="copy the comparison, and keep it as a file"),
        HELP,
    ]

    def __init__(self, both: Sequence[Run]) -> None:
        names = dict.fromkeys(run.report.scenario for run in both)
        title = f"history ▸ {' and '.join(names)}, A and B"
        super().__init__(title, lambda width: self._compared(), wide=True)
        self._both = both
        self._all_lines = False

    def _compared(self) -> Block:
        analysis = needed("compare.analysis")
        saved = [analysis.saved_run(run.report, run.state) for run in self._both]
        names = [Path(run.report.run_file).stem for run in self._both]
        report = analysis.compare_sides(*names, saved[:1], saved[1:])
        drawn: Block = needed("compare.view").comparison_view(report, verbose=self._all_lines)
        return drawn

    def action_all_lines(self) -> None:
        self._all_lines = not self._all_lines
        self._draw()

    def action_copy(self) -> None:
        """As text: into the clipboard, as far as the terminal takes it, and into a file beside the
        run file of B.
        """
        path = Path(self._both[1].report.run_file).with_suffix(".compared.md")
        self._title = copy_drawn(self.app, self._compared(), path, path.name)
        self._draw()
