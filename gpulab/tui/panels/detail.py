"""What there is to see of one scenario, in tabs, and how it is looked at."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import TabbedContent, TabPane, Tabs

from gpulab.draw.blocks import FAILED_HERE
from gpulab.features import needed, present
from gpulab.tui.panels.pane import Pane
from gpulab.tui.panels.tabs import TABS, Selection, changing, content
from gpulab.tui.reading import GUESSED, keep, lessons
from gpulab.tui.runs import Runs, words_of

if TYPE_CHECKING:
    from gpulab.catalog.catalog import Entry
    from gpulab.session.run import Run
    from gpulab.tui.earlier import PreviousRuns

_IN_RESULT, _IN_LESSON = "questions of the course", "questions; the result"
"""Headings of the questions, where they are answered."""


class Detail(TabbedContent):
    """A pane a tab; only the one in sight is ever drawn."""

    def __init__(self, runs: Runs, facts: Mapping[str, str], beside: Pane) -> None:
        """`facts`: more lines for the page of the lesson; `beside`: where a wide screen shows its
        code or its result.
        """
        super().__init__()
        self._runs = runs
        self._facts = facts
        self._beside = beside
        self._family: str | None = None
        self._panel: str | None = None
        self._drawn: dict[str, tuple[str, Selection, Hashable]] = {}
        """What the tab in sight, and what is beside it, were last laid out of."""
        self.zoomed = self.frozen = False
        self.answered: set[str] = set()
        """Lessons whose questions are answered."""
        self._guessed = lessons(GUESSED)
        self._seeks = ""
        """Words that are to be in sight once they are drawn."""

    def compose(self) -> ComposeResult:
        for number, (name, tab) in enumerate(TABS.items(), 1):
            self.compose_add_child(
                TabPane(f"{number} {tab.title}", Pane(id=f"{name}-pane"), id=name)
            )
        yield from super().compose()

    def on_mount(self) -> None:
        self.query_one(Tabs).can_focus = False  # its keys would hide the list's

    @property
    def tab(self) -> str:
        return self.active or next(iter(TABS))

    @property
    def pane(self) -> Pane:
        return self.query_one(f"#{self.tab}-pane", Pane)

    def about(self, *, under_way: bool) -> str:
        """Return how to read what is in sight: a panel that was chosen, or the tab."""
        if under_way and self._panel is not None:
            zoomed = needed("live.screen").ZOOMED
            return next((panel.about for panel in zoomed if panel.name == self._panel), "")
        return TABS[self.tab].about

    def another_scenario(self) -> None:
        """Look at another one, from its top."""
        self._family = None
        self.pane.to_top()

    def look_at(self, panel: str | None) -> None:
        """Choose a panel of the run by its name; None for no one."""
        self._panel = panel

    def show_expected(self, name: str, *, keeps: bool) -> None:
        """Show what to expect of a lesson from now on: it was guessed, or is replayed."""
        if name not in self._guessed:
            self._guessed.add(name)
            if keeps:
                keep(GUESSED, name)

    def choose_panel(self, by: int) -> None:
        from gpulab.tui.panels.result import next_panel

        self._panel = next_panel(self._panel, by)

    def choose_family(self, run: Run) -> None:
        from gpulab.tui.panels.roofline import next_family

        self._family = next_family(run, self._family)

    def answer(self, name: str) -> str:
        """Show the answers to the questions of a lesson, or where they are in sight hide them;
        returns the tab that has them: a result answers them with its figures.
        """
        if self.tab == "result" and _IN_RESULT in self.pane.text:
            self._seeks = _IN_RESULT
            return "result"
        if self.tab == "lesson" and name in self.answered:
            self.answered.remove(name)
        else:
            self.answered.add(name)
            self._seeks = _IN_LESSON
        return "lesson"

    def refused_keys(self, entry: Entry) -> set[str]:
        """Return the ids of keys that have nothing to show of a scenario."""
        course = present("course.report")
        refused = set() if course and entry.name in course.lesson_places() else {"answers"}
        run = self._runs.of(entry.name)
        if self.tab != "roofline" or run is None or not run.ended:
            return refused | {"family"}
        from gpulab.tui.panels.roofline import has_families

        return refused if has_families(run) else refused | {"family"}

    def redraw(self) -> None:
        """Lay the tab in sight out again when it is drawn next, whatever has changed."""
        self._drawn.pop("in sight", None)

    def draw(self, entry: Entry, earlier: PreviousRuns | None = None) -> None:
        """Bring the tab in sight up to date, unless nothing in it has changed, or it is frozen."""
        runs = self._runs
        run = runs.of(entry.name)
        if self.frozen and runs.current is run:
            return
        under_way = run is not None and not run.ended
        bare = self.tab == "result" and (under_way or self.zoomed)
        if bare != self.pane.has_class("-bare"):
            self.pane.set_class(bare, "-bare")
            # its gutter goes or comes, which is no change of its size
            self.call_after_refresh(self.pane.post_message, Pane.Resized())
        self._draw("in sight", self.tab, self.pane, entry, earlier)
        if self._seeks and self.pane.room:
            self.pane.scroll_to_text(self._seeks)
            self._seeks = ""
        if self._beside.display:
            beside = "result" if run is not None and "result" in TABS else "code"
            self._draw("beside", beside, self._beside, entry, earlier)

    def _draw(
        self, place: str, name: str, pane: Pane, entry: Entry, earlier: PreviousRuns | None
    ) -> None:
        """Lay out a tab in a pane."""
        if not pane.room or name not in TABS:
            return  # out of sight, or a tab that was just opened: it has its place a frame later
        tab, selection = TABS[name], self._selection(entry, pane, earlier)
        run = selection.run
        printed = run.state.log.count if run is not None and tab.follows_end else 0
        drawn = name, selection, (changing(run), printed)
        before = self._drawn.get(place)
        if drawn == before:
            return
        self._drawn[place] = drawn
        title = f"{entry.name} · {tab.title.lower()}"
        if pane.border_title != title:  # the frame is drawn again for it
            pane.border_title = title
        pane.show(content(name, selection), follow=tab.follows_end)
        if before is None or (before[0], before[1].row.name) != (name, entry.name):
            pane.to_top()
            if name == "code":
                pane.scroll_to_text(FAILED_HERE)  # where a line failed

    def _may_expect(self, entry: Entry, earlier: PreviousRuns | None) -> bool:
        if entry.name in self._guessed | self.answered or not entry.can_be_guessed:
            return True
        return earlier is not None and earlier.shown.measured

    def _selection(self, entry: Entry, pane: Pane, earlier: PreviousRuns | None) -> Selection:
        name, runs = entry.name, self._runs
        run = runs.of(name)
        return Selection(
            entry.row,
            entry.source,
            run,
            (pane.room, pane.size.height),
            self._panel,
            self.zoomed,
            self._family,
            answers=name in self.answered,
            expected=run is not None or self._may_expect(entry, earlier),
            prediction=None if name in runs.reopened else runs.predictions.get(name),
            sweep=runs.sweeps.get(name),
            together=runs.together.get(name),
            settings=runs.settings(name),
            age=self._age(run, entry, earlier),
            earlier={**(earlier.facts(entry) if earlier else {}), **self._facts},
            saved=entry.saved,
        )

    def _age(self, run: Run | None, entry: Entry, earlier: PreviousRuns | None) -> str:
        """The line above the result of an earlier run, or of one that was followed; of one that is
        being read how old it is.
        """
        if run is None:
            return earlier.age_in_words if earlier is not None else ""
        if earlier is not None and entry.name in self._runs.reopened:
            return earlier.after(entry, read_only=bool(getattr(self.screen, "read_only", "")))
        return words_of(run.source) if run.ended else ""
