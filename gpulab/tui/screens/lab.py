"""The lab's screen: the list of scenarios, and of the one under the cursor its lesson, its run and
its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Input, OptionList

from gpulab.catalog.catalog import Entry, ScenarioRow
from gpulab.core.units import plural
from gpulab.draw.blocks import Text
from gpulab.features import modules, taken_out
from gpulab.options import Options
from gpulab.tui import bindings, status
from gpulab.tui.ask import Ask, PressedTwice
from gpulab.tui.panels.catalog import ABOUT_LIST, CatalogColumn, ScenarioList
from gpulab.tui.panels.footer import KeysFooter, fitting, in_footer
from gpulab.tui.panels.pane import Pane
from gpulab.tui.panels.status_line import StatusLine
from gpulab.tui.runs import Runs, Starter

if TYPE_CHECKING:
    from gpulab.report.past import PastRun
    from gpulab.session.run import Run
    from gpulab.tui.panels.detail import Detail


class LabScreen(Screen[int]):
    """At most one run at a time; each scenario keeps its last one."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings.KEYS]
    AUTO_FOCUS = "#list"
    room_beside: float = 112
    """Columns from which on the panels of a run have room beside the list."""
    keys = bindings.KEYS
    read_only = ""
    """Where nothing runs: the answer to every key that would run something."""

    def __init__(
        self,
        entries: Sequence[Entry],
        settings: Options,
        tick_s: float,
        starter: Starter,
        runs_first: str | None = None,
        *,
        idle: Callable[[Sequence[ScenarioRow], int, int], Text],
    ) -> None:
        """`runs_first`: the entry that is started as soon as there is something to see. `idle`: the
        first line while nothing runs, of the list, how many of it were measured, and the width.
        """
        super().__init__()
        self._catalog = CatalogColumn(entries)
        self._tick_s = tick_s
        self.runs = Runs(settings, starter)
        self._quitting = False
        self.complete = False
        """The tabs are there too; until then it cannot be left."""
        self._again = PressedTwice()
        self._words_of_idle = idle
        self.beside: Callable[[], str] = lambda: ""
        """What else there is to say of a run."""
        self._line = StatusLine(self.runs, self._idle, lambda: self.beside())
        self._ticks: Timer | None = None
        self._detail: Detail | None = None
        self._reading: set[str] = set()
        """Run files that are being read."""
        self._walks: Timer | None = None
        """Ends once the cursor has rested: a step through the list draws two of its lines, not a
        lesson beside it.
        """
        self._tab = ""
        self._in_list = False
        """Whether the list had the focus before a panel filled the screen."""
        self._footer: Mapping[str, str] = {}
        """The keys that the last line names, with their words."""
        self._runs_first = runs_first
        self.follows = ""
        """Whether the teacher of a class is followed, in a word; empty where there is no class."""
        self.facts: Mapping[str, str] = {}
        """More lines for the page of a lesson."""

    def compose(self) -> ComposeResult:
        yield self._line
        with Horizontal(id="body"):
            yield self._catalog
        yield KeysFooter()

    def on_mount(self) -> None:
        self._ticks = self.set_interval(self._tick_s, self._tick, pause=True)
        self._list.focus()
        self.refresh_rows()

    @on(KeysFooter.Drawn)
    async def _add_detail(self) -> None:
        """Add the rest once the list and its keys are on screen: they are looked at first."""
        if self._detail is not None:
            return
        from gpulab.tui.panels.detail import Detail

        beside = Pane(id="beside")
        detail = Detail(self.runs, self.facts, beside)
        await self.query_one("#body").mount(detail, beside)
        self._detail = detail
        if self._tab:
            self.action_show(self._tab)
        self._resized()
        self.run_worker(self._catalog.read_history, thread=True)
        self.complete = True
        if self._quitting:
            self._leave()
        elif self._runs_first is not None:
            self._list.go_to(self._runs_first)
            self.run()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._resized)

    def on_descendant_focus(self) -> None:
        self.refresh_rows()

    on_screen_resume = on_descendant_focus

    def _resized(self) -> None:
        self._catalog.resize(self.size.width)
        reads = self._detail is not None and self._detail.tab == "lesson"
        # where a lesson has its code, or its result, beside it
        self.set_class(reads and self.size.width >= 160, "-beside")
        if self.focused is None:  # what had it is out of sight
            if self._list.display or self._detail is None:
                self._list.focus()
            else:
                self._detail.pane.focus()
        self.call_after_refresh(self.refresh_rows)

    @on(OptionList.OptionHighlighted)
    def _cursor_moved(self) -> None:
        if self.complete and self.focused is self._list:  # a search says what it found
            self._line.say()
        if self._detail is None:
            return self.refresh_rows()
        self._detail.another_scenario()
        if self._walks is not None:
            self._walks.stop()
        # drawn beside the list once the cursor has rested
        self._walks = self.set_timer(0.3, self._rest)
        self.refresh_rows()

    def _rest(self) -> None:
        """Show what there is of the scenario under the cursor, which has stayed there."""
        if self._walks is not None:
            self._walks.stop()
            self._walks = None
        self.refresh_rows()

    @on(Pane.Resized)
    def on_tabbed_content_tab_activated(self) -> None:  # by name: its import takes long
        self.call_after_refresh(self.refresh_rows)

    @on(OptionList.OptionSelected)
    def action_open(self) -> None:
        """Show what there is of the scenario under the cursor: its run, or its lesson; from its
        result on, the next lesson.
        """
        if (entry := self.chosen) is not None and entry.saved:
            self.run()
        elif isinstance(self.focused, Pane) and self.runs.of(self._list.chosen):
            self.action_next()
        elif (name := self._list.chosen) is not None:
            has_run = self.runs.of(name) or name in self._catalog.earlier
            self.action_show("result" if has_run else "lesson")
            if self._detail is not None:
                self._detail.pane.focus()

    def action_next(self) -> None:
        names = self._list.order
        if (name := self._list.chosen) in names[:-1]:
            self._catalog.leave_search()
            self._list.go_to(names[names.index(name) + 1])
            self.action_show("lesson")

    def action_answers(self) -> None:
        if self._detail is not None and (name := self._list.chosen) is not None:
            self.action_show(self._detail.answer(name))

    def show_expected(self, name: str) -> None:
        """Show what a lesson expects from now on."""
        if self._detail is not None:
            self._detail.show_expected(name, keeps=getattr(self.app, "keeps_files", True))

    def action_run(self) -> None:
        self.run()

    def run(self, *, sweep: str | None = None) -> None:
        """Run the scenario under the cursor, or a sweep of it; empty: of its own values."""
        name = self._list.chosen
        if name is None:
            return
        if not self._catalog.entries[name].saved and self.is_busy():
            return
        if problem := self._start(name, sweep):
            self.say(status.cannot_run(problem, self._catalog.entries[name].row), "bold red")
        else:
            self._line.say()
            if self.size.width < self.room_beside and not self.has_class("-narrow"):
                self.add_class("-alone")
            self.action_show("result")
            self.call_after_refresh(self._resized)
            if self._detail is not None:
                # the result before it may have been read to its end
                self._detail.pane.scroll_home(animate=False)

    def action_run_picked(self) -> None:
        if self.is_busy():
            return
        if not self._list.picked:
            self.refuse("m marks scenarios in the list, R then runs them one after the other")
        else:
            names = self._list.picked
            question = f"Run {plural(len(names), 'scenario')}: {', '.join(names)}?"
            self.app.push_screen(Ask(question), self._run_marked)

    def _run_marked(self, agreed: bool | None) -> None:
        if agreed:
            self.runs.waiting = [*self._list.picked]
            self._run_next()

    def _run_next(self) -> None:
        """Start what waits; what cannot run here says so by its mark, and the next one starts."""
        while self.runs.waiting and self.runs.running is None:
            name = self.runs.waiting.pop(0)
            self._list.leave(name)
            if self._start(name):
                self._catalog.cannot_run(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A slash is typed where one types."""
        return action != "search" or not isinstance(self.focused, Input)

    async def action_search(self) -> None:
        self.action_back()
        await self._catalog.search(self.say)

    @property
    def chosen(self) -> Entry | None:
        return self._catalog.entries.get(self._list.chosen or "")

    @property
    def about(self) -> str:
        """Return how to read what has the focus."""
        if self._detail is None or (self.has_class("-narrow") and not self.has_class("-detail")):
            return ABOUT_LIST
        return self._detail.about(under_way=self._shows_run is not None)

    @property
    def names(self) -> list[str]:
        return list(self._catalog.entries)

    @property
    def entries(self) -> list[Entry]:
        """The catalog, each as its file was when it was last looked at."""
        return list(self._catalog.entries.values())

    def run_file(self, name: str) -> Path | None:
        """Return the file of the run of a scenario that is shown, or that would be."""
        if (run := self.runs.of(name)) is not None:
            return run.source.path
        earlier = self._catalog.earlier.get(name)
        return Path(earlier.shown.run_file) if earlier else None

    def go_to(self, name: str) -> None:
        self._list.go_to(name)
        self.action_open()

    def say(self, text: str, style: str = "") -> None:
        """Show a message in the first line, until the next key."""
        self._line.say(text, style)
        self.refresh_rows()

    def refuse(self, text: str) -> None:
        """Say why a key does nothing now."""
        self.say(text, "yellow")

    def is_busy(self) -> bool:
        """Return whether a run goes on beside which none can start; say so."""
        if self.runs.running is not None:
            self.refuse(status.another_runs(self.runs.running))
        return self.runs.running is not None

    def list_again(self, entries: Sequence[Entry]) -> None:
        """List these in place of those that are listed; the cursor stays on its own."""
        self._catalog.list_again(entries)
        self._resized()

    def read_again(self, entry: Entry) -> None:
        """Its file may be another by now."""
        self._catalog.read_again(entry.name)
        self.refresh_rows()

    def action_stop(self) -> None:
        if self.runs.running is None or self.runs.stopping:
            return self.refuse("nothing runs: r runs the lesson under the cursor")
        if self._again.press("s"):
            self.runs.stop()
            self.say("")
        else:
            self.refuse(f"s again stops {self.runs.running}; what was measured stays")

    def action_back(self) -> None:
        """Go back to the list; what runs goes on."""
        self._line.say()
        if self._detail is not None and self._detail.zoomed:
            return self.action_zoom()
        if self.focused is self._list:
            self._catalog.leave_search()
        self.remove_class("-detail", "-alone")
        self.set_focus(self._list)
        self.refresh_rows()

    def action_show(self, tab: str) -> None:
        """Show one of the tabs of the scenario under the cursor."""
        self._tab = tab
        if self._detail is None:
            return  # a key pressed before it is there
        if tab == "lesson" and self._list.chosen is not None:
            self._catalog.open(self._list.chosen)
        in_pane = isinstance(self.focused, Pane)
        self.add_class("-detail")
        self._detail.active = tab
        self._rest()
        if in_pane or self._hides_list:  # else the focus would stay in what is now hidden
            self._detail.pane.focus()
        self.call_after_refresh(self._resized)

    def action_next_family(self) -> None:
        if (run := self.runs.of(self._list.chosen)) and self._detail is not None:
            self._detail.choose_family(run)
            self.refresh_rows()

    def action_derive(self, key: str) -> None:
        """Start what a feature derives from the step of the scenario under the cursor."""
        entry = self.chosen
        if self.read_only:
            self.refuse(self.read_only)
        elif entry is not None and not self.is_busy():
            self.run_worker(self._start_derived(entry, key), exclusive=True, group="derived")

    async def _start_derived(self, entry: Entry, key: str) -> None:
        starts = {key: start for each in modules("deriving") for key, start in each.STARTS.items()}
        if key not in starts:
            return self.refuse(taken_out(f"key {key}"))
        start = await starts[key](self, entry)
        if isinstance(start, str):
            return self.say(start, "bold red")
        if start is None or self.runs.running is not None or self._quitting:
            return None
        if problem := start():
            return self.say(problem, "bold red")
        if self._ticks:
            self._ticks.resume()
        self._line.say()
        return self.action_show("result")

    def action_zoom(self) -> None:
        if detail := self._shows_run:
            detail.zoomed = not detail.zoomed
            self.set_class(detail.zoomed, "-zoomed")
            if not detail.zoomed and self._in_list and not self._hides_list:
                self.set_focus(self._list)
            else:
                self._in_list = detail.zoomed and self.focused is self._list
                self.set_focus(detail.pane)
            self.call_after_refresh(self.refresh_rows)

    def action_hide_list(self) -> None:
        """Give a wide screen to the scenario under the cursor alone, or show the list beside it
        again.
        """
        if self.has_class("-narrow"):
            return  # which has one of the two
        self.toggle_class("-alone")
        self.call_after_refresh(self._resized)

    def action_next_panel(self, by: int) -> None:
        """Choose another panel of the run; where there is none to choose, the other side of the
        screen.
        """
        detail = self._shows_run
        if detail and (detail.zoomed or self.runs.running or isinstance(self.focused, Pane)):
            detail.pane.focus()
            detail.choose_panel(by)
            self.refresh_rows()
        elif by > 0:
            self.focus_next()

    def action_move(self, by: int) -> None:
        """Move the cursor of the list, or scroll the text."""
        if isinstance(self.focused, Pane):
            self.focused.scroll_relative(y=by, animate=False)
        elif by > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()

    def action_mark(self) -> None:
        self._list.pick()

    def action_freeze(self) -> None:
        """Keep what is on screen as it is, while the run goes on; or go on with it."""
        detail = self._detail
        if detail is not None and (
            detail.frozen or (self._shows_run and self.runs.current is not None)
        ):
            detail.frozen = not detail.frozen
            self.refresh_rows()

    @property
    def _hides_list(self) -> bool:
        """Return whether a lesson, or a run, has all of the screen."""
        return self.has_class("-narrow") or self.has_class("-alone")

    @property
    def _shows_run(self) -> Detail | None:
        """The panels of a run, where they are in sight."""
        in_sight = self.has_class("-detail") or not self.has_class("-narrow")
        shown = (
            self._detail is not None
            and self._detail.tab == "result"
            and self.runs.of(self._list.chosen)
        )
        return self._detail if in_sight and shown else None

    def quit(self) -> None:
        """Stop what runs, and leave once nothing of it is left."""
        if not self._quitting:
            self._quitting = True
            if self.complete:
                self._leave()

    def action_quit(self) -> None:
        """Quit; while a run goes on, when asked twice."""
        asks = self.runs.running is not None and not (self.runs.stopping or self.read_only)
        if asks and not self._again.press("q"):
            return self.refuse(f"q again stops {self.runs.running} and quits")
        return self.quit()

    def _leave(self) -> None:
        if not self.runs.stop():
            self.app.exit(0)
        self.refresh_rows()

    def on_unmount(self) -> None:
        self.runs.end()  # where the app ends in some other way

    def _idle(self, width: int) -> Text:
        if self._list.filtered:
            return status.line(self._list.filtered)
        rows = [entry.row for entry in self._catalog.entries.values()]
        return self._words_of_idle(rows, self._list.measured, width)

    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        """All that hold, of which the last line names those that matter now, in their order."""
        return in_footer(super().active_bindings, self._footer)

    def footer_keys(self) -> dict[str, str]:
        """Return the ids of the keys that matter now, with their words."""
        refused = self.refused_keys()
        named = {key.id or "": key for key in self.keys if key.id not in refused}
        names = ("follow",) * bool(self.follows) + self._keys_of_focus()
        keys = [named[name] for name in names if name in named]
        return fitting(keys, self._other_words(), self.size.width)

    def refused_keys(self) -> set[str]:
        """Return the ids of keys that would only say why they do nothing now."""
        refused = {*bindings.NEED_IDLE} if self.runs.running else {"stop"}
        if self.read_only:
            refused |= bindings.RUNS
        entry = self.chosen
        if entry is None:
            return refused | bindings.NEED_RUN | {"open", "run", "predict", "replay"}
        recorded, runs = entry.row.recording, not (entry.row.missing or self.read_only)
        if not runs:
            refused.add("run")
        if not (entry.can_be_guessed and (runs or recorded)):
            refused.add("predict")
        if not (recorded or self.run_file(entry.name)):
            refused.add("replay")
        if self.runs.of(entry.name) is None:
            refused |= bindings.NEED_RUN
        if self._detail is not None:
            refused |= self._detail.refused_keys(entry)
        return refused

    def _other_words(self) -> dict[str, str]:
        """Return the words of keys that do now what they mostly do not."""
        words: dict[str, str] = {}
        if self._detail is not None and self._detail.frozen:
            words["freeze"] = "resume"
        if self._detail is not None and self._detail.zoomed:
            words["zoom"] = "back"
        return words

    def _keys_of_focus(self) -> tuple[str, ...]:
        detail = self._detail
        if self.runs.running is not None and self._shows_run is not None:
            return bindings.footer_of("running")
        if isinstance(self.focused, Input):
            return "open", "back"
        if detail is None or self.focused is self._list:
            has_runs = self._list.measured > 0 or self.runs.any
            keys = bindings.footer_of("measured" if has_runs else "list")
            return keys if self._list.filtered else tuple(key for key in keys if key != "back")
        has_run = bool(self.run_file(self._list.chosen or ""))
        shows = has_run or detail.tab in ("lesson", "code")
        return bindings.footer_of(detail.tab if shows else "no run")

    @property
    def _list(self) -> ScenarioList:
        return self._catalog.scenarios

    def _start(self, name: str, sweep: str | None = None) -> str | None:
        """Start a run, or a sweep; returns the problem where that cannot be."""
        entry = self._catalog.read_again(name)
        if entry.saved:
            problem = self.runs.follow(entry)
        elif sweep is None:
            problem = self.runs.start(entry)
        else:
            problem = self.runs.start_sweep(entry, sweep)
        if self._ticks and not problem:
            self._ticks.resume()
        return problem

    def _tick(self) -> None:
        """Take in what came, and show it."""
        name = self.runs.poll()
        if name is not None and (run := self.runs.of(name)):
            self._line.say()
            if self._detail is not None:
                self._detail.frozen = False
            self._take(name, run)
            if self._quitting:
                self.app.exit(0)
            self._run_next()
            if self._ticks and self.runs.running is None:
                self._ticks.pause()
        self.refresh_rows()

    def _take(self, name: str, run: Run) -> None:
        """Put beside a scenario what its run, which has ended, came to."""
        self._catalog.take(name, run, self.runs.answered.pop(name, None))

    def refresh_rows(self) -> None:
        """Bring every row on screen up to date; rows that are as they were cost nothing."""
        if not self.is_mounted:
            return
        entry, detail = self.chosen, self._detail
        in_sight = (
            self._shows_run is not None and entry is not None and self.runs.running == entry.name
        )
        self._line.update_line(frozen=detail is not None and detail.frozen, in_sight=in_sight)
        words = self.footer_keys() if self._walks is None else self._footer
        if list(words.items()) != list(self._footer.items()):
            self._footer = words
            self.refresh_bindings()
        if detail is None or entry is None or self._walks is not None:
            return
        earlier = self._catalog.earlier.get(entry.name)
        if earlier is not None and detail.tab != "lesson":
            self._reopen(entry.name, earlier.shown)
        detail.draw(entry, earlier)

    def _reopen(self, name: str, past: PastRun) -> None:
        """Read an earlier run of a scenario that has none here, or only one that was stopped or a
        smoke run.
        """
        run = self.runs.of(name)
        here = run is not None and (not run.ended or run.source.path == Path(past.run_file))
        if not here and past.run_file not in self._reading:
            self._reading.add(past.run_file)
            self.run_worker(self._read(name, past))

    async def _read(self, name: str, past: PastRun) -> None:
        from gpulab.tui.earlier import read_run

        run = await asyncio.to_thread(read_run, past)
        self._reading.discard(past.run_file)
        if isinstance(run, str):
            self._catalog.earlier.pop(name, None)
            return self.refuse(run)
        self.runs.reopen(name, run)
        self.refresh_rows()
