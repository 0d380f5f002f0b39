"""The catalog on screen: its list, the search above it, and what earlier runs came to beside each
scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.reactive import reactive
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from gpulab.catalog.catalog import Entry, ScenarioRow, by_name, read_again, search
from gpulab.catalog.needs import NEEDS, short_need
from gpulab.catalog.view import (
    CANNOT_RUN,
    OutcomeMark,
    by_course,
    by_topic,
    mark,
    title_without_name,
)
from gpulab.draw.blocks import Text
from gpulab.draw.canvas import fit, wide
from gpulab.features import present
from gpulab.report.sentences import sentence
from gpulab.tui import status
from gpulab.tui.panels.field import InputLine
from gpulab.tui.reading import READ, keep, lessons

if TYPE_CHECKING:
    from gpulab.features.predictions.report import Answered
    from gpulab.session.run import Run
    from gpulab.tui.earlier import PreviousRuns

_NAME, _MARK, _VERDICT, _AGE = 3, 7, 8, 7
"""Cells: of what stands before a name, and of the columns at the right edge."""
_FRAME = 4
"""Cells of the list's frame, the air at its left, and its scrollbar."""
WIDE, _WITH_VERDICTS, _WITH_AGES = 100, 120, 130
"""Columns of the terminal from which on the list stands beside what it is about; has verdicts; and
ages: what it is about keeps 78 of them.
"""
_TWO_PANES, _ROOM_FOR_ALL = 160, 190
"""Columns between which the list leaves its ages out: a lesson has its code beside it."""
_MEASURED, _GUESSED, _READ, _MARKED = "●", "◐", "○", "*"

ABOUT_LIST = (
    "The scenarios in the order of the course, or by topic (c). Before each: "
    f"{_MEASURED} measured, {_GUESSED} guessed, {_READ} read, {_MARKED} marked for R. Beside each: "
    "how many times as fast its best variant was in the newest run, the verdict, and how long ago "
    "that was. A question mark: inconclusive; > or <: the nearer end of an imprecise one; a star: "
    "a quick run. What it lacks here, or 'replay' where a recording ships: "
    f"{', '.join(f'{letter} {what}' for letter, what in NEEDS.items())}."
)


class ScenarioList(OptionList):
    """A line a scenario: its name, the mark of its last run, and its title where the list has all
    the width.
    """

    # Not "select", whose message would come after what the next key does.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.open", "open", key_display="enter", id="open")
    ]

    # Textual would paint all of them for each step of the cursor
    highlighted: reactive[int | None] = reactive(None, repaint=False)

    def __init__(self, rows: Sequence[ScenarioRow], columns: int, **options: str) -> None:
        """In so many columns of the terminal: what fits is not drawn twice."""
        self._outcomes: dict[str, tuple[OutcomeMark, str]] = {}
        """What the last run of each came to, and how long ago."""
        self._name_width = max((len(row.name) for row in rows), default=0)
        self._rows = {row.name: row for row in rows}
        self._width = columns - _FRAME
        if columns >= WIDE:
            self._width = self.width_beside(columns) - _FRAME
        self.picked: list[str] = []
        """Those that were marked for R, in the order in which they were."""
        self.read: set[str] = set()
        """Lessons that were opened."""
        self.guessed: set[str] = set()
        self._by_course = True
        self._found: Mapping[str, str] | None = None
        self._before_search: str | None = None
        super().__init__(*self._options_of(rows), **options)  # type: ignore[arg-type]
        self.border_title = "course"
        if first := self._first_to_run():
            self.highlighted = self.get_option_index(first)

    def _watch_highlighted(self, before: int | None, now: int | None) -> None:
        for line in (before, now):
            if line is not None:
                self.refresh_lines(line)

    def width_beside(self, columns: int) -> int:
        """Cells that it takes beside what it is about, in so many columns."""
        width = _NAME + self._name_width + _MARK
        if columns >= _WITH_VERDICTS:
            width += _VERDICT
        if columns >= _WITH_AGES and not _TWO_PANES <= columns < _ROOM_FOR_ALL:
            width += _AGE
        return width + _FRAME

    @property
    def _room(self) -> int:
        """Cells beside the names."""
        return self._width - _NAME - self._name_width

    @property
    def chosen(self) -> str | None:
        """The name of the scenario under the cursor."""
        return self.highlighted_option.id if self.highlighted_option else None

    @property
    def measured(self) -> int:
        """Return how many have a result."""
        return sum(_is_result(mark) for mark, _ in self._outcomes.values())

    @property
    def order(self) -> list[str]:
        """Return the names of all, in the order of the course."""
        return [row.name for _, members in by_course([*self._rows.values()]) for row in members]

    @property
    def is_untouched(self) -> bool:
        """Return whether nothing was read or measured, and the cursor is on the first lesson."""
        is_new = self.has_focus and not (self.read or self.measured)
        return is_new and [self.chosen] == self.order[:1]

    @property
    def filtered(self) -> str:
        """Return how many a search has found, and where; empty where all are listed."""
        if self._found is None:
            return ""
        return status.found([*self._found.values()], len(self._rows))

    def regroup(self) -> bool:
        """Put the scenarios in the order of the course, or under their topics again; whether it is
        the course.
        """
        self._by_course = not self._by_course
        self._show(self._shown_rows, self.chosen)
        self.border_title = "course" if self._by_course else "topics"
        return self._by_course

    def list_again(self, rows: Sequence[ScenarioRow]) -> None:
        """List these; the cursor stays on its own where that is among them."""
        before = self.chosen
        self._rows = {row.name: row for row in rows}
        self._name_width = max((len(row.name) for row in rows), default=0)
        self._show(rows, before if before in self._rows else self._first_to_run())

    def go_to(self, name: str) -> None:
        """Put the cursor on it, in sight of all."""
        self.show_only(None)
        self.highlighted = self.get_option_index(name)

    def pick(self) -> None:
        """Mark the one under the cursor, or take its mark away; and go on to the next."""
        name = self.chosen
        if name is not None:
            if name in self.picked:
                self.picked.remove(name)
            else:
                self.picked.append(name)
            self._redraw(name)
            self.action_cursor_down()

    def leave(self, name: str) -> None:
        """It is not marked any more."""
        if name in self.picked:
            self.picked.remove(name)
            self._redraw(name)

    def show_only(self, found: Mapping[str, str] | None) -> None:
        """Show those that were found, by name, each with where, the cursor on one by its name; None
        for all.
        """
        if found == self._found:
            return
        if self._found is None:
            self._before_search = self.chosen
        before, self._found = self.chosen or self._before_search, found
        rows = self._shown_rows
        best = self._rows if found is None else by_name(found)
        ordered = (row.name for _, members in self._groups(rows) for row in members)
        first = next((name for name in ordered if name in best), None)
        stays = found is None and before in self._rows
        self._show(rows, before if stays else first)

    def mark(self, name: str, mark: OutcomeMark, ago: str = "now") -> None:
        """Put what a run came to beside its scenario, and how long ago it was."""
        if name in self._rows and self._outcomes.get(name) != (mark, ago):
            self._outcomes[name] = mark, ago
            self._redraw(name)

    def mark_read(self, names: Iterable[str], *, guessed: bool = False) -> None:
        """Mark lessons as read, or as guessed."""
        marked = self.guessed if guessed else self.read
        for name in [name for name in names if name in self._rows and name not in marked]:
            marked.add(name)
            self._redraw(name)

    def change(self, row: ScenarioRow) -> None:
        """Show what the scenario's file says now."""
        self._rows[row.name] = row
        self._redraw(row.name)

    def on_resize(self, event: Resize) -> None:
        width = self.scrollable_content_region.width
        if width != self._width:
            self._width = width
            for name in self._rows:
                self._redraw(name)

    def _redraw(self, name: str) -> None:
        if self._found is None or name in self._found:
            self.replace_option_prompt(name, self._prompt(self._rows[name]))

    @property
    def _shown_rows(self) -> list[ScenarioRow]:
        return [
            row for row in self._rows.values() if self._found is None or row.name in self._found
        ]

    def _show(self, rows: Sequence[ScenarioRow], chosen: str | None) -> None:
        """List these, the cursor on the chosen one."""
        self.clear_options()
        self.add_options(self._options_of(rows))
        if chosen is not None:
            self.highlighted = self.get_option_index(chosen)

    def _groups(self, rows: Sequence[ScenarioRow]) -> list[tuple[str, list[ScenarioRow]]]:
        return by_course(rows) if self._by_course else by_topic(rows)

    def _options_of(self, rows: Sequence[ScenarioRow]) -> list[Option]:
        options = []
        for topic, members in self._groups(rows):
            options.append(Option(topic, disabled=True))
            options += [Option(self._prompt(row), id=row.name) for row in members]
        return options

    def _prompt(self, row: ScenarioRow) -> Text:
        """Name, title where there is room, and at the right edge what the last run came to, or what
        it needs: no column ever moves.
        """
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{self._sign(row)} ", "green")
        line.append(f"{row.name:<{self._name_width}} ", "red" if row.error else "")
        right = self._outcome(row)
        if self._width >= 60:
            room = max(0, self._room - right.cell_len - bool(right))
            title = fit(f" {_row_note(row)}", room)
            line.append(title, "red" if row.error else "dim")
            if right:
                line.append(" " * (room - wide(title) + 1))
        return line.append(right)

    def _sign(self, row: ScenarioRow) -> str:
        """Return how far somebody is with it."""
        if row.name in self.picked:
            return _MARKED
        if row.name in self._outcomes and _is_result(self._outcomes[row.name][0]):
            return _MEASURED
        if row.name in self.guessed:
            return _GUESSED
        return _READ if row.name in self.read else " "

    def _outcome(self, row: ScenarioRow) -> Text:
        """Return what the last run came to, with the verdict and how long ago it was where they
        have room; else what it needs: where there is no room a letter.
        """
        mark, ago = self._outcomes.get(row.name, (OutcomeMark("", ""), ""))
        verdicts = self._room >= _MARK + _VERDICT
        ages = self._room >= _MARK + _VERDICT + _AGE
        if mark.text:
            text = f"{mark.text:>{_MARK}}"
            if verdicts:
                text += f" {fit(mark.verdict, _VERDICT - 1):<{_VERDICT - 1}}"
            if ages:
                text += f"{ago:>{_AGE}}"
            return Text(text, mark.style)
        need = short_need(row.missing) if row.missing else None
        if need is None:
            return Text()
        words = "▶ replay" if row.recording else f"needs {need[1]}"
        width = _MARK + verdicts * _VERDICT
        if len(words) > width:
            words = "▶" if row.recording else need[0]
        return Text(f"{words:>{width}}{' ' * (ages * _AGE)}", "dim")

    def _first_to_run(self) -> str | None:
        """Return the name of the first that has no result, of the user's own where there are any;
        the course teaches in its order, so also where only a recording can be watched.
        """
        rows = [row for _, members in self._groups([*self._rows.values()]) for row in members]
        own = [row for row in rows if row.own]
        able = [row for row in own or rows if not row.error]
        able = [row for row in able if row.recording or not row.missing] or able or rows
        return able[0].name if able else None


def _is_result(mark: OutcomeMark) -> bool:
    return (
        bool(mark.verdict) or mark.text.startswith("timed") or mark.text.rstrip("*").endswith("?")
    )


def _row_note(row: ScenarioRow) -> str:
    """Return what the list has room for beside a name: what is wrong with it, or its title."""
    if row.error:
        return row.error
    if row.missing and short_need(row.missing) is None:
        return sentence(row.missing)
    return title_without_name(row)


class SearchBar(InputLine):
    """Left with Enter, which keeps what was found, or with Esc, which does not."""

    def __init__(
        self,
        entries: Callable[[], Sequence[Entry]],
        scenarios: ScenarioList,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(placeholder="names, lessons, code", id="search")
        keep, leave = partial(self._leave, keep=True), partial(self._leave, keep=False)
        self.on_keys = {"enter": keep, "down": keep, "escape": leave}
        self._entries, self._scenarios, self._say = entries, scenarios, say

    def on_input_changed(self, event: Input.Changed) -> None:
        entries = self._entries()
        if not event.value.strip():
            self._scenarios.show_only(None)
            self._say("")
            return
        found = search(entries, event.value)
        self._scenarios.show_only(found)
        self._say(status.found(list(found.values()), len(entries)))

    def _leave(self, *, keep: bool) -> None:
        if not keep or not self.value.strip():
            self.value = ""
            self._scenarios.show_only(None)
            self.display = False
        self._say("")
        self.screen.set_focus(self._scenarios)
        # else Textual moves the focus to it when the list makes way
        self.can_focus = False


class CatalogColumn(Vertical):
    """Entries by name, each as its file was when it was last looked at."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__(id="catalog")
        self.entries = {entry.name: entry for entry in entries}
        self._bar: SearchBar | None = None
        self._marked: set[str] = set()
        self.earlier: dict[str, PreviousRuns] = {}
        """Of scenarios that have run before."""

    def compose(self) -> ComposeResult:
        rows = [entry.row for entry in self.entries.values()]
        yield ScenarioList(rows, self.app.size.width, id="list")

    def on_mount(self) -> None:
        self.resize(self.app.size.width)

    def resize(self, columns: int) -> None:
        """All of a narrow terminal, else as much as the list takes beside what it is about."""
        self.styles.width = "1fr" if columns < WIDE else self.scenarios.width_beside(columns)

    @property
    def scenarios(self) -> ScenarioList:
        return self.query_one(ScenarioList)

    def read_again(self, name: str) -> Entry:
        """The entry as its file is now: one that is edited while the screen is open is what a
        student does all day.
        """
        entry = self.entries[name] = read_again(self.entries[name])
        self.scenarios.change(entry.row)
        return entry

    def list_again(self, entries: Sequence[Entry]) -> None:
        """List these in place of those that are listed."""
        self.entries = {entry.name: entry for entry in entries}
        self.scenarios.list_again([entry.row for entry in entries])

    def cannot_run(self, name: str) -> None:
        """It was to run, and this machine lacks something for it."""
        self._marked.add(name)
        self.scenarios.mark(name, CANNOT_RUN)

    def take(self, name: str, run: Run, predicted: Answered | None) -> None:
        """Put beside a scenario what its run of now came to; one that was stopped, and a smoke run,
        leave the last result there.
        """
        from gpulab.tui.earlier import add_run

        self._marked.add(name)
        earlier = add_run(self.earlier.get(name), run, predicted)
        if earlier is not None:
            self.earlier[name] = earlier
        if earlier is not None and earlier.has_newer:
            self.scenarios.mark(name, mark(earlier.shown), earlier.age)
        else:
            self.scenarios.mark(name, mark(run.report))

    def open(self, name: str) -> None:
        """Its lesson is being read."""
        if name not in self.scenarios.read and not self.entries[name].saved:
            self.scenarios.mark_read([name])
            if getattr(self.app, "keeps_files", True):
                keep(READ, name)

    async def search(self, say: Callable[[str], None]) -> None:
        """Type into the search, which is made when it is first asked for, and says what it
        found.
        """
        if self._bar is None:
            self._bar = SearchBar(lambda: list(self.entries.values()), self.scenarios, say)
            await self.mount(self._bar, before=self.scenarios)
        self._bar.display = self._bar.can_focus = True
        # at once: what is typed next may be in the terminal already
        self.screen.set_focus(self._bar)

    def leave_search(self) -> None:
        """List all scenarios again, where a search had found some."""
        if self._bar is not None and self._bar.display:
            self._bar.value = ""
            self._bar.display = False
            self.scenarios.show_only(None)

    def read_history(self) -> None:
        """In a thread: what earlier runs came to, so that the list knows it after a restart."""
        from gpulab.tui.earlier import previous_runs

        entries = [entry for entry in self.entries.values() if not entry.saved]
        if not entries:
            return
        predictions = present("predictions.report")
        guessed = predictions.newest_answers() if predictions else {}
        earlier_runs = previous_runs(entries, guessed)
        self.app.call_from_thread(self._show_history, earlier_runs, lessons(READ), [*guessed])

    def _show_history(
        self, earlier_runs: Mapping[str, PreviousRuns], read: Iterable[str], guessed: Iterable[str]
    ) -> None:
        self.scenarios.mark_read(read)
        self.scenarios.mark_read(guessed, guessed=True)
        for name, earlier in earlier_runs.items():
            if name not in self._marked:
                self.earlier[name] = earlier
                self.scenarios.mark(name, mark(earlier.shown), earlier.age)
        self.screen.refresh_rows()  # type: ignore[attr-defined]
