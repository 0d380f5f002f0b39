"""All runs of this machine: looked for, opened again, and two of them compared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, cast

from rich.segment import Segment
from rich.style import Style
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input
from textual.worker import get_current_worker

from gpulab.catalog.catalog import Entry
from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import needed, present, taken_out
from gpulab.features.history.view import (
    columns,
    count_of_runs,
    differing,
    facts,
    line,
    name_width,
    nothing_listed,
    others_on_one_axis,
    search_text,
)
from gpulab.report.live import LiveReport, live_run
from gpulab.report.past import PastRun
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.session.run_files import at_home, runs_folder
from gpulab.session.store import Store
from gpulab.show.parts import Shown, Target, on_screen
from gpulab.show.terminal import of_text
from gpulab.tui import status
from gpulab.tui.bindings import HELP
from gpulab.tui.copying import copy_drawn
from gpulab.tui.earlier import read_run
from gpulab.tui.panels.field import InputLine
from gpulab.tui.panels.pane import TextPane
from gpulab.tui.screens.lab import LabScreen
from gpulab.tui.screens.page import Page, name_box

if TYPE_CHECKING:
    from gpulab.features.compare.analysis import SavedRun
    from gpulab.tui.app import LabApp

_CURSOR = Style(color="default", bgcolor="default", reverse=True)
_HEAD = 1
"""Lines above the first run, which do not scroll."""


class HistoryList(ScrollView, can_focus=True):
    """A line a run, with a cursor, and up to two that are marked, A and B."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("m", "mark", "mark", tooltip="mark a run as A, the next as B"),
    ]

    class Moved(Message):
        """The cursor is on another run, or others are listed around it."""

    def __init__(self, entries: Iterable[Entry], of: Entry | None = None) -> None:
        """`entries`: the catalog, for the defaults of parameters; `of`: on whose newest run the
        cursor is until it is moved.
        """
        super().__init__(id="runs")
        self._of = (str(of.path), of.name) if of is not None else None
        self._scenarios = {(str(entry.path), entry.name): entry.scenario for entry in entries}
        self._all: list[tuple[PastRun, str]] = []
        """With what one may look for, the newest first."""
        self._runs: list[PastRun] = []
        self._words: list[str] = []
        self._only: PastRun | None = None
        """Where only runs of its scenario are listed."""
        self._cursor = 0
        self._longest = 0
        self.marked: list[PastRun] = []
        self._now = datetime.now(UTC)

    def add(self, runs: Sequence[tuple[PastRun, str]]) -> None:
        """More runs, each with what one may look for; the cursor stays on its run."""
        self._all += runs
        self._all.sort(key=lambda both: both[0].at, reverse=True)
        self._longest = max([self._longest, *(len(run.scenario) for run, _ in runs)])
        before, chosen = self._visible, self.chosen if self._cursor else self._newest_of_entry()
        self._choose()
        moved = any(old is not new for old, new in zip_longest(before, self._visible))
        if moved or not before or chosen not in (None, self.chosen):
            self._go_to(chosen)

    def show_only(self, text: str) -> None:
        """Those in which every word of the text is found."""
        self._of = None
        self._words = text.casefold().split()
        self._choose()
        self._go_to(None)

    def toggle_scenario(self) -> bool:
        """List the runs of the chosen one's scenario only, or all again; returns whether it is one
        scenario's.
        """
        chosen = self.chosen
        self._only = chosen if self._only is None else None
        self._choose()
        self._go_to(chosen)
        return self._only is not None

    def _newest_of_entry(self) -> PastRun | None:
        return next((run for run, _ in self._all if (run.path, run.scenario) == self._of), None)

    @property
    def chosen(self) -> PastRun | None:
        """The run under the cursor."""
        return self._runs[self._cursor] if self._runs else None

    @property
    def text(self) -> str:
        """Return what of it is in sight."""
        return "\n".join(self.render_line(y).text for y in range(self.size.height))

    @property
    def counts(self) -> tuple[int, int]:
        """(how many are shown, how many there are)."""
        return len(self._runs), len(self._all)

    def of_scenario(self, chosen: PastRun) -> list[PastRun]:
        """All runs of a run's scenario, the oldest first."""
        path, name = chosen.path, chosen.scenario
        return [run for run, _ in reversed(self._all) if run.path == path and run.scenario == name]

    def action_move(self, by: int) -> None:
        self._of = None
        before, self._cursor = (
            self._cursor,
            min(max(self._cursor + by, 0), max(0, len(self._runs) - 1)),
        )
        if before != self._cursor:
            self._refresh_row(before)
            self._refresh_row(self._cursor)
            self._scroll_to_cursor()
            self.post_message(self.Moved())

    def action_mark(self) -> None:
        """Mark the run under the cursor, or take its mark away; a third one takes the place of
        B.
        """
        run = self.chosen
        if run is None:
            return
        if run in self.marked:
            self.marked.remove(run)
        else:
            self.marked = [*self.marked[:1], run]
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        name = name_width(self._longest, width - 3)
        if y < _HEAD:
            return self._strip(Text("   ").append(columns(width - 3, name)), width)
        place = y - _HEAD + self.scroll_offset.y
        if place >= len(self._runs):
            return Strip.blank(width, self.rich_style)
        run = self._runs[place]
        sign = next(
            (sign for sign, marked in zip("AB", self.marked, strict=False) if marked is run), " "
        )
        text = Text(f"{'>' if place == self._cursor else ' '}{sign}")
        scenario = self._scenarios.get((run.path, run.scenario))
        differ = differing(run, scenario) if scenario else ""
        text.append(" ").append(line(run, self._now, width - 3, name, differ))
        return self._strip(text, width, _CURSOR if place == self._cursor else None)

    def _strip(self, text: Text, width: int, style: Style | None = None) -> Strip:
        text.append(" " * (width - text.cell_len))
        segments = list(of_text(text).render(self.app.console))
        if style is not None:
            segments = list(Segment.apply_style(segments, post_style=style))
        return Strip(segments).crop_extend(0, width, self.rich_style).apply_style(self.rich_style)

    def _choose(self) -> None:
        words, only = self._words, self._only
        path, name = (only.path, only.scenario) if only else ("", "")
        every: Sequence[tuple[PastRun, str]] = self._all
        for word in words:
            every = [both for both in every if word in both[1]]
        self._runs = [
            run for run, _ in every if only is None or (run.path == path and run.scenario == name)
        ]
        rows = len(self._runs) + _HEAD
        self.virtual_size = Size(self.scrollable_content_region.width, rows)
        self.styles.height = rows

    @property
    def _visible(self) -> list[PastRun]:
        return self._runs[self.scroll_offset.y : self.scroll_offset.y + self.size.height]

    def _go_to(self, chosen: PastRun | None) -> None:
        """The cursor on that run where it is listed, else on the first one."""
        self._cursor = next((place for place, run in enumerate(self._runs) if run is chosen), 0)
        self._scroll_to_cursor()
        self.refresh()
        self.post_message(self.Moved())

    def _scroll_to_cursor(self) -> None:
        """The first line stands still, so that one line less scrolls."""
        top, rows = self.scroll_offset.y, max(1, self.size.height - _HEAD)
        self.scroll_to(0, min(max(top, self._cursor - rows + 1), self._cursor), animate=False)

    def _refresh_row(self, place: int) -> None:
        self.refresh(Region(0, place + _HEAD - self.scroll_offset.y, self.size.width, 1))


@dataclass(frozen=True)
class Opened:
    """A run file as it is read now, for panels and for a comparison."""

    run: LiveReport
    saved: SavedRun | None
    """None where nothing compares."""

    @property
    def report(self) -> RunReport:
        return self.run.report


_LOWER_ROWS = 7
"""Rows of what the run under the cursor stands among."""
_WAIT_S = 0.25


class HistoryScreen(ModalScreen[None]):
    """The list, and below it the runs of the same scenario on one axis."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open", tooltip="open the run: its result"),
        Binding("d", "compare", "compare", tooltip="compare the two marked runs"),
        # at once: what is typed next may be in the terminal already
        Binding("slash", "search", "search", priority=True, tooltip="search the runs"),
        Binding("i", "only_lesson", "its lesson only", tooltip="its runs only, or all"),
        Binding("v", "replay", "replay", tooltip="play the run under the cursor again"),
        Binding("escape", "back", "back", tooltip="leave the search, then the history"),
        HELP,
        Binding("q", "app.quit", show=False),
    ]

    class Arrived(Message):
        """Runs, each with what one may look for; how far it is, empty where no more come."""

        def __init__(self, runs: Sequence[PastRun], reading: str) -> None:
            super().__init__()
            self.runs = [(run, search_text(run)) for run in runs]
            self.reading = reading

    def __init__(self, entries: Iterable[Entry], of: Entry | None = None) -> None:
        """As of the list."""
        super().__init__()
        self._list = HistoryList(entries, of)
        self._reading = "reading"
        self._problem = ""
        self._message = ""

    def compose(self) -> ComposeResult:
        bar = InputLine(placeholder="scenario, verdict, device, date, parameter", id="search")
        bar.on_keys = {
            "enter": self._leave_search,
            "down": self._leave_search,
            "escape": self.action_back,
        }
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
        self.call_after_refresh(self._moved)

    def _read(self) -> None:
        """In a thread: the index, then the run files that it lacks, but not beside a run that
        measures.
        """
        worker = get_current_worker()
        lab = self._lab
        with Store() as store:
            unread = store.unread()
            self.post_message(self.Arrived(store.known(), "reading"))
            for read, path in enumerate(unread):
                reading = f"reading {read:,} of {len(unread):,}"
                self.post_message(self.Arrived((), reading))
                while lab.runs.running is not None and not worker.is_cancelled:
                    time.sleep(_WAIT_S)
                if worker.is_cancelled:
                    return
                if run := store.read(path):
                    self.post_message(self.Arrived((run,), reading))
        if problem := store.problem():
            self._problem = sentence(problem)
        self.post_message(self.Arrived((), ""))

    @property
    def _lab(self) -> LabScreen:
        return next(screen for screen in self.app.screen_stack if isinstance(screen, LabScreen))

    def on_history_screen_arrived(self, message: Arrived) -> None:
        self._reading = message.reading
        if message.runs:
            self._list.add(message.runs)
        self._show_below()
        self._say(self._message)

    @on(HistoryList.Moved)
    def _moved(self) -> None:
        self._say()
        self._show_below()

    def _show_below(self) -> None:
        """Show what the run under the cursor stands among."""
        below, run = self.query_one("#below", TextPane), self._list.chosen
        if run is None:
            if self._reading or self._problem:
                return below.show("")
            return below.show(nothing_listed(any_runs=self._list.counts[1] > 0))
        width, height = below.size.width, _LOWER_ROWS
        if not width:
            return None
        drawn = others_on_one_axis(self._list.of_scenario(run), run, width=width, height=height)
        about = Text(facts(run), no_wrap=True, overflow="ellipsis")
        path = Text(at_home(Path(run.run_file)), "dim", overflow="fold")
        return below.show(Group(about, path, drawn))

    def _say(self, message: str = "") -> None:
        """Show a message in the frame; without one, what is listed."""
        self._message = message
        shown, every = self._list.counts
        counts = count_of_runs(every) if shown == every else f"{shown:,} of {count_of_runs(every)}"
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
    def _search(self, event: Input.Changed) -> None:
        self._list.show_only(event.value)

    def _leave_search(self) -> None:
        self.set_focus(self._list)

    def action_only_lesson(self) -> None:
        """List the runs of the scenario under the cursor only, or all again."""
        self._list.toggle_scenario()

    def action_back(self) -> None:
        """Leave the search, then the screen."""
        bar = self.query_one(InputLine)
        if bar.display:
            bar.value, bar.display = "", False
            self._leave_search()
        else:
            self.dismiss()

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
        runs = tuple(sorted(runs, key=lambda run: run.at))
        both = []
        for run in runs:
            opened = await asyncio.to_thread(_read, run)
            if isinstance(opened, str):
                return self._say(opened)
            both.append((run, opened))
        if len(both) == 1:
            opened_run = both[0][1].run
            title = f"history ▸ {runs[0].scenario}"
            page = ResultPage(title, lambda width: _opened(opened_run, width), wide=True)
            self.app.push_screen(page)
        else:
            self.app.push_screen(ComparePage(both, self._list.of_scenario))


class ResultPage(Page):
    """The result of a run of the past."""

    BINDINGS: ClassVar[list[BindingType]] = [HELP]


class ComparePage(Page):
    """Two runs beside each other, of which the second may be exchanged for another run of its
    scenario.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "exchange(-1)", "older B", priority=True, tooltip="the run before B"),
        Binding("right", "exchange(1)", "newer B", priority=True, tooltip="the run after B"),
        Binding("x", "swap", "swap", tooltip="A becomes B"),
        Binding("plus", "all_lines", "all lines", tooltip="all lines that differ, or the first"),
        Binding("y", "copy", "copy", tooltip="copy the comparison, and keep it as a file"),
        HELP,
    ]

    def __init__(
        self,
        both: Sequence[tuple[PastRun, Opened]],
        of_scenario: Callable[[PastRun], Sequence[PastRun]],
    ) -> None:
        """`of_scenario` gives the runs of a run's scenario, the oldest first."""
        self._of_both = f"history ▸ {both[0][0].scenario}, A and B"
        super().__init__(self._of_both, lambda width: self._compared(), wide=True)
        self._both, self._of_scenario = list(both), of_scenario
        self._all_lines = False

    def _compared(self) -> Block:
        (_, first), (_, second) = self._both
        report = needed("compare.analysis").compare_sides("A", "B", [first.saved], [second.saved])
        drawn: Block = needed("compare.view").comparison_view(report, verbose=self._all_lines)
        return drawn

    def _say(self, message: str = "") -> None:
        self._title = message or self._of_both
        self._draw()

    def action_swap(self) -> None:
        """A becomes B."""
        self._both.reverse()
        self._say()

    def action_all_lines(self) -> None:
        """All lines of the files that differ, or the first ones again."""
        self._all_lines = not self._all_lines
        self._say()

    def action_exchange(self, by: int) -> None:
        """The next older or newer run of B's scenario in its place."""
        self.run_worker(self._exchange(by), exclusive=True)

    async def _exchange(self, by: int) -> None:
        (first, _), (second, _) = self._both
        runs = [run for run in self._of_scenario(second) if run is not first]
        place = next(place for place, run in enumerate(runs) if run is second) + by
        if not 0 <= place < len(runs):
            return self._say(
                f"{self._of_both}: no run of B's lesson is {'older' if by < 0 else 'newer'}"
            )
        opened = await asyncio.to_thread(_read, runs[place])
        if isinstance(opened, str):
            return self._say(opened)
        self._both[1] = runs[place], opened
        self._say()

    def action_copy(self) -> None:
        """As text: into the clipboard, as far as the terminal takes it, and into a file beside the
        run file of B.
        """
        path = Path(self._both[1][0].run_file).with_suffix(".compared.md")
        self._say(copy_drawn(self.app, self._compared(), path, path.name))


def _read(past: PastRun) -> Opened | str:
    """The run of the past as its file tells it; or the problem where it cannot be read."""
    run = read_run(past)
    if isinstance(run, str):
        return run
    compare = present("compare.analysis")
    saved = compare.saved_run(run.report, run.state) if compare else None
    return Opened(live_run(run.report, run.state), saved)


def _opened(run: LiveReport, width: int) -> Block:
    return on_screen(Shown(run.report, Target.SCREEN, width=width, live=run))
