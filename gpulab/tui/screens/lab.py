"""The lab's screen: the list of scenarios, and of the one under the cursor its lesson, its run and its log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Footer, OptionList

from gpulab.catalog.catalog import Entry, read_again
from gpulab.catalog.needs import default_device
from gpulab.protocol.finding import Finding
from gpulab.session.settings import Settings, UsageError
from gpulab.tui.panels.pane import Pane
from gpulab.tui.panels.scenario_list import ScenarioList
from gpulab.tui.panels.selection import Selection
from gpulab.tui.panels.tabs import TABS
from gpulab.views import status
from gpulab.views.findings import sentence, with_reason
from gpulab.views.listing import mark
from gpulab.views.text import Glyphs

if TYPE_CHECKING:
    from gpulab.session.run import Run
    from gpulab.session.source import Live, Source
    from gpulab.tui.panels.detail import Detail

Starter = Callable[[Entry, Settings], "Source | Finding"]
"""Starts a run and gives its source, or the reason why it cannot run here. UsageError."""
_CONFIRM_S = 3.0
"""How long a second `s` still stops the run."""


class LabScreen(Screen[int]):
    """At most one run at a time; each scenario keeps its last one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open"),  # the list takes Enter for itself, with the same effect
        Binding("r", "run", "run"),
        Binding("s", "stop", "stop"),
        Binding("escape", "back", "back"),
        Binding("l", "back", "list", show=False),
        *(Binding(str(number), f"show({name!r})", name) for number, name in enumerate(TABS, 1)),
        Binding("f", "next_family", show=False),
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(
        self, entries: Sequence[Entry], settings: Settings, glyphs: Glyphs, tick_s: float, starter: Starter
    ) -> None:
        super().__init__()
        self._entries = {entry.name: entry for entry in entries}
        self._settings, self._glyphs, self._tick_s, self._starter = settings, glyphs, tick_s, starter
        self._runs: dict[str, Run] = {}
        self._running_name: str | None = None
        self._stopping = self._quitting = self._complete = False
        self._stop_asked_at: float | None = None
        self._message: tuple[str, str] = ("", "")
        self._ticks: Timer | None = None
        self._detail: Detail | None = None
        self._tab = ""
        self._family: str | None = None
        self._drawn: object = None
        """What the tab in sight was last laid out of."""

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
        from gpulab.tui.panels.detail import Detail

        detail = Detail()
        await self.query_one("#body").mount(detail)
        self._detail = detail
        if self._tab:
            self.action_show(self._tab)
        self._resized()
        self._complete = True
        if self._quitting:
            self._leave()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._resized)

    def _resized(self) -> None:
        # All of a narrow terminal; beside the tabs as much as the names take.
        self._list.styles.width = "1fr" if self.has_class("-narrow") else self._list.names_width
        if self.focused is None:  # what had it is out of sight
            in_sight = self._list if self._list.display or self._detail is None else self._detail.pane
            in_sight.focus()
        self.call_after_refresh(self._refresh)

    @on(OptionList.OptionHighlighted)
    def _cursor_moved(self) -> None:
        self._message = ("", "")
        self._family = None
        if self._detail is not None:
            self._detail.pane.scroll_home(animate=False)
        self._refresh()

    def on_tabbed_content_tab_activated(self) -> None:
        self._refresh()  # by a click; by name, since importing it would delay the first frame

    @on(OptionList.OptionSelected)
    def action_open(self) -> None:
        """Show what there is of the scenario under the cursor: its run, or its lesson."""
        if (name := self._list.chosen) is not None:
            self.action_show("result" if name in self._runs else "lesson")

    def action_run(self) -> None:
        """Run the scenario under the cursor."""
        name = self._list.chosen
        if name is None:
            return
        if self._running_name is not None:
            self._say(status.another_runs(self._running_name), "yellow")
        elif problem := self._start(name):
            self._say(problem, "bold red")
        else:
            self._message = ("", "")
            self.action_show("result")
            if self._detail is not None:
                self._detail.pane.scroll_home(animate=False)  # the result before it may have been read to its end

    def action_stop(self) -> None:
        """Stop what runs, when asked twice."""
        if self._running_name is None or self._stopping:
            return
        if self._stop_asked_at is not None and monotonic() - self._stop_asked_at <= _CONFIRM_S:
            self._message = ("", "")
            self._stop()
        else:
            self._stop_asked_at = monotonic()
            self._say(status.confirm_stop(self._running_name), "yellow")

    def action_back(self) -> None:
        """Go back to the list; what runs goes on."""
        self._message = ("", "")
        self.remove_class("-detail")
        self._list.focus()
        self._refresh()

    def action_show(self, tab: str) -> None:
        """Show one of the tabs of the scenario under the cursor."""
        self._tab = tab
        if self._detail is None:
            return  # a key pressed before it is there
        in_pane = isinstance(self.focused, Pane)
        self.add_class("-detail")
        self._detail.active = tab
        if in_pane or self.has_class("-narrow"):  # else the focus would stay in what is now hidden
            self._detail.pane.focus()
        self.call_after_refresh(self._refresh)

    def action_next_family(self) -> None:
        """Draw the roofline of another type of numbers."""
        from gpulab.tui.panels.roofline import next_family

        if run := self._runs.get(self._list.chosen or ""):
            self._family = next_family(run, self._family)
            self._refresh()

    def action_quit(self) -> None:
        """Stop what runs, and leave once nothing of it is left."""
        self.quit()

    def quit(self) -> None:
        if not self._quitting:
            self._quitting = True
            if self._complete:  # what is half mounted cannot be left
                self._leave()

    def _leave(self) -> None:
        if self._running_name is None:
            self.app.exit(0)
        else:
            self._stop()

    def on_unmount(self) -> None:
        self.end_run()  # where the app ends in some other way

    def end_run(self) -> None:
        """Stop what runs, and wait until nothing of it is left."""
        if source := self._live():
            source.cancel()
            source.wait()

    def cancel_run(self) -> None:
        """Stop what runs, from a handler too, which must not wait for the loop: that may wait for the terminal."""
        run = self._runs.get(self._running_name or "")
        if (cancel := getattr(run and run.source, "cancel", None)) is not None:
            cancel()

    @property
    def _list(self) -> ScenarioList:
        return self.query_one(ScenarioList)

    def _start(self, name: str) -> str | None:
        """Start a run; returns the problem where that cannot be."""
        # As it is now: a file that is edited while the screen is open is what a student does all day.
        entry = self._entries[name] = read_again(self._entries[name])
        self._list.change(entry.row)
        try:
            source = self._starter(entry, self._settings)
        except UsageError as error:
            return with_reason(str(error), error.reason)
        if isinstance(source, Finding):
            return sentence(source)
        from gpulab.session.run import Run

        self._running_name, self._stopping = name, False
        self._runs[name] = Run(source)
        if self._ticks:
            self._ticks.resume()
        return None

    def _stop(self) -> None:
        if source := self._live():
            self._stopping = True
            source.cancel()
        self._refresh()

    def _live(self) -> Live | None:
        """What runs, where it can be stopped."""
        if self._running_name is None:
            return None
        from gpulab.session.source import Live

        source = self._runs[self._running_name].source
        return source if isinstance(source, Live) else None

    def _tick(self) -> None:
        if self._running_name is None:
            return
        name, run = self._running_name, self._runs[self._running_name]
        run.poll()
        if run.ended:
            self._running_name, self._message = None, ("", "")
            if self._ticks:
                self._ticks.pause()
            self._list.mark(name, *mark(run.report))
            if self._quitting:
                self.app.exit(0)
        self._refresh()

    def _say(self, text: str, style: str) -> None:
        self._message = text, style
        self._refresh()

    def _refresh(self) -> None:
        """Bring every row on screen up to date; rows that are as they were cost nothing."""
        name = self._list.chosen if self.is_mounted else None
        if name is None:
            return
        self.query_one("#status", Pane).show(self._status())
        if self._detail is None:
            return
        tab, run, pane = self._detail.active or next(iter(TABS)), self._runs.get(name), self._detail.pane
        size = pane.scrollable_content_region.width, pane.size.height
        drawn = (name, tab, size, self._family, self._entries[name].sha256, TABS[tab].changing(run))
        if drawn != self._drawn:
            self._drawn = drawn
            selection = Selection(self._entries[name].row, run, self._glyphs, size, self._family)
            pane.show(TABS[tab].content(selection), follow=TABS[tab].follows_end)

    def _status(self) -> Text:
        message, style = self._message
        if not message:
            message = f"gpulab · {self._activity()}"
        text = Text(self._glyphs(f" {message}"), style, no_wrap=True, overflow=self._glyphs.overflow)
        text.pad_right(max(0, self.size.width - text.cell_len))
        return text

    def _activity(self) -> str:
        if self._running_name is None:
            return status.ready(self._settings.device or default_device())
        if self._stopping:
            return status.stopping(self._running_name)
        from gpulab.views.progress import headline

        return headline(self._runs[self._running_name].report)
