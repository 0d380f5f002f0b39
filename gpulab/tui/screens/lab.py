"""The lab's screen: the list of scenarios, and of the one under the cursor its lesson, its run and its log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.console import Group, RenderableType
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, OptionList

from gpulab.model.accounting import chart
from gpulab.model.conclude import run_result
from gpulab.model.roofline import Roofline
from gpulab.run.catalog import Entry, read_file
from gpulab.run.needs import default_device, first_missing
from gpulab.run.record import at_home
from gpulab.run.request import Settings, UsageError, request_for
from gpulab.tui.widgets.pane import Pane
from gpulab.tui.widgets.scenario_list import ScenarioList
from gpulab.views import lesson, listing, log, progress
from gpulab.views.results import failures, result
from gpulab.views.roofline.reasons import reasons
from gpulab.views.roofline.view import families, first_family, roofline
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from gpulab.tui.live_run import LiveRun
    from gpulab.tui.widgets.detail import Detail


class LabScreen(Screen[int]):
    """At most one run at a time; each scenario keeps its last one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "run", "run", key_display="enter"),  # the list takes Enter for itself
        Binding("enter", "run", show=False),
        Binding("escape", "back", "stop/back"),
        Binding("l", "list", "list"),
        Binding("1", "show('lesson')", "lesson"),
        Binding("2", "show('run')", "result"),
        Binding("3", "show('roofline')", "roofline"),
        Binding("4", "show('log')", "log"),
        Binding("f", "next_family", show=False),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(self, entries: Sequence[Entry], settings: Settings, glyphs: Glyphs, tick_s: float) -> None:
        super().__init__()
        self._entries = {entry.name: entry for entry in entries}
        self._settings, self._glyphs, self._tick_s = settings, glyphs, tick_s
        self._runs: dict[str, LiveRun] = {}
        self._now: LiveRun | None = None
        self._message: tuple[str, str] = ("", "")
        self._ticks: Timer | None = None
        self._quitting = False
        self._detail: Detail | None = None
        self._tab = ""
        self._family: str | None = None
        """Whose roofline is drawn; None for that of the first point."""
        self._seen: object = None

    def compose(self) -> ComposeResult:
        yield Pane(id="status")
        with Horizontal(id="body"):
            yield ScenarioList([entry.row for entry in self._entries.values()], self._glyphs, id="list")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        self.query_one("#status", Pane).can_focus = False
        self._ticks = self.set_interval(self._tick_s, self._tick, pause=True)
        self._list.focus()
        self._refresh()
        self.call_after_refresh(self._add_detail)

    async def _add_detail(self) -> None:
        """The rest, once the list is on screen: it is what one looks at first, and this takes as long again."""
        from gpulab.tui.widgets.detail import Detail

        detail = Detail()
        await self.query_one("#body").mount(detail)
        self._detail = detail
        if self._tab:
            self.action_show(self._tab)
        self._refresh()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        if self.focused is None:  # what had it is out of sight
            in_sight = self._list if self._list.display or self._detail is None else self._detail.pane
            in_sight.focus()
        self._refresh()

    @on(OptionList.OptionHighlighted)
    def _another(self) -> None:
        self._message = ("", "")
        self._family = None
        if self._detail is not None:
            self._detail.pane.scroll_home(animate=False)
        self._refresh()

    def on_tabbed_content_tab_activated(self) -> None:
        self._refresh()  # by a click; by name, since importing it would delay the first frame

    @on(OptionList.OptionSelected)
    def action_run(self) -> None:
        """Run the scenario under the cursor."""
        name = self._list.chosen
        if name is None:
            return
        if self._now is not None:
            self._say(f"{self._now.name} is running: Esc stops it", "yellow")
        elif why := self._start(name):
            self._say(why, "bold red")
        else:
            self._message = ("", "")
            self.action_show("run")

    def action_back(self) -> None:
        """Stop what runs; else go back to the list."""
        self._message = ("", "")
        if self._now is not None:
            self._now.stop()
            self._refresh()
        else:
            self.action_list()

    def action_list(self) -> None:
        """Go back to the list, and let what runs run."""
        self.remove_class("-detail")
        self._list.focus()

    def action_show(self, tab: str) -> None:
        """Show one of the tabs of the scenario under the cursor."""
        self._tab = tab
        if self._detail is None:
            return  # a key pressed before it is there
        self.add_class("-detail")
        self._detail.active = tab
        if self.has_class("-narrow"):
            self._detail.pane.focus()
        self.call_after_refresh(self._refresh)

    def action_next_family(self) -> None:
        """Draw the roofline of another type of numbers."""
        of = self._roofline()
        if of is not None and len(found := families(of)) > 1:
            at = found.index(self._family if self._family in found else first_family(of))
            self._family = found[(at + 1) % len(found)]
            self._refresh()

    def action_quit(self) -> None:
        """Stop what runs, and leave once nothing of it is left."""
        self.quit()

    def quit(self) -> None:
        if self._quitting:  # asked twice: the warden ends what is left, unwatched
            self._now = None
        if self._now is None:
            self.app.exit(0)
        else:
            self._quitting = True
            self._now.stop()
            self._refresh()

    def on_unmount(self) -> None:
        self.end_run()  # where the app ends in some other way

    def end_run(self) -> None:
        """Stop what runs, and wait until nothing of it is left."""
        if self._now is not None:
            self._now.wait()

    @property
    def _list(self) -> ScenarioList:
        return self.query_one(ScenarioList)

    def _start(self, name: str) -> str | None:
        """Start a run; returns why it cannot be."""
        # As it is now: a file that is edited while the screen is open is what a student does all day.
        entry = self._entries[name] = read_file(self._entries[name].path)
        self._list.change(entry.row)
        if entry.error:
            return f"{entry.path.name}, {entry.error}"
        scenario = entry.scenario
        if scenario is None:
            return f"{entry.path.name} has no Scenario"
        baseline = next(iter(scenario.variants.values()))
        if why := first_missing((*scenario.needs, *baseline.needs), self._settings.device):
            return why
        from gpulab.tui.live_run import LiveRun

        known = {one: value for one, value in self._settings.chosen.items() if one in scenario.params}
        try:
            request = request_for(entry, replace(self._settings, chosen=known))
            self._now = self._runs[name] = LiveRun(name, request)
        except UsageError as error:
            return str(error)
        except OSError as error:
            return f"no run file can be made: {error}"
        if self._ticks:
            self._ticks.resume()
        return None

    def _tick(self) -> None:
        run = self._now
        if run is None:
            return
        run.poll()
        if run.drained:
            self._now, self._message = None, ("", "")
            if self._ticks:
                self._ticks.pause()
            self._list.mark(run.name, *listing.mark(run_result(run.state)))
            if self._quitting:
                self.app.exit(0)
        self._refresh()

    def _say(self, text: str, style: str) -> None:
        self._message = text, style
        self._refresh()

    def _refresh(self) -> None:
        """Bring every row on screen up to date; rows that are as they were cost nothing."""
        if not self.is_mounted or self._list.chosen is None:
            return
        self.query_one("#status", Pane).show(self._status())
        if self._detail is not None:
            tab, run = self._detail.active, self._runs.get(self._list.chosen)
            seen = (self._list.chosen, tab, self.size, self._family, run and (run.drained, *_changing(run, tab)))
            if tab in ("log", "roofline") and seen == self._seen:
                return  # laying out a thousand lines again would take a quarter of a core
            self._seen = seen
            self._detail.pane.show(self._content(tab), follow=tab == "log")

    def _content(self, tab: str) -> RenderableType:
        name = self._list.chosen or ""
        run = self._runs.get(name)
        if tab == "lesson":
            return lesson.lesson(self._entries[name].row, self._glyphs)
        if run is None:
            return Text(self._glyphs("Enter runs it."), "dim")
        if tab == "log":
            return log.log(run.state, self._glyphs, live=not run.drained)
        if tab == "roofline":
            return self._drawn()
        if not run.drained:
            return progress.lines(run.state, self._glyphs, now=monotonic())
        found = run_result(run.state, str(run.path))
        return Group(
            result(found, self._glyphs),
            Text(self._glyphs(f"run file: {at_home(run.path)}"), "dim"),
            failures(run.state, self._glyphs),
        )

    def _roofline(self) -> Roofline | None:
        """Of the run under the cursor, as it is now: points move as rounds come in."""
        run = self._runs.get(self._list.chosen or "")
        return chart(run_result(run.state, live=not run.drained)) if run else None

    def _drawn(self) -> RenderableType:
        of = self._roofline()
        if of is None or self._detail is None:
            return Text(self._glyphs("No roofline so far: the ceilings of the device have not been measured."), "dim")
        pane = self._detail.pane
        width, height = pane.scrollable_content_region.width, pane.size.height
        drawn = roofline(of, self._glyphs, width=width, height=height, family=self._family)
        hint = "f draws another type of numbers\n" if len(families(of)) > 1 else ""
        return Group(drawn, Text(hint, "dim"), reasons(of.points, self._glyphs))

    def _status(self) -> Text:
        said, style = self._message
        if self._now is None:
            told = f"ready, on {self._settings.device or default_device()}"
        elif self._now.stopping:
            told = f"{self._now.name}: stopping"
        else:
            told = progress.headline(self._now.state, monotonic())
        text = Text(self._glyphs(f" gpulab · {told}"), no_wrap=True, overflow=self._glyphs.overflow)
        if said:
            text = Text(self._glyphs(f" {said}"), style, no_wrap=True, overflow=self._glyphs.overflow)
        text.pad_right(max(0, self.size.width - text.cell_len))
        return text


def _changing(run: LiveRun, tab: str) -> tuple[object, ...]:
    """What must have changed for a tab to be laid out again; points of a roofline move once a second."""
    return (run.state.log, run.state.failures) if tab == "log" else (int(run.state.t), run.state.ceilings)
