"""The scenarios by topic, in the order in which they are taught, each with what its last run came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpulab.catalog.search import by_name
from gpulab.protocol.listing import ScenarioRow
from gpulab.views.findings import sentence
from gpulab.views.listing import Mark, by_course, by_topic, title_beside_name
from gpulab.views.text import Glyphs

_ROOM_FOR_TITLES = 60
_MARK, _BESIDE_NAME = 7, 4
"""Cells of a mark, and of what stands around a name and its mark."""
_VERDICT, _AGE = 6, 7
_MARKS = 1 + _MARK + 1 + _VERDICT + _AGE
_BESIDE_TITLE = 1
_CURSOR = Style(color="default", bgcolor="default", reverse=True, dim=False)

ABOUT_LIST = (
    "The scenarios by topic, in the order in which they are taught. Beside each: how many times as fast its best "
    "variant was in the newest run, the verdict, and how long ago that was. A question mark: inconclusive; a star: a "
    "quick run."
)


class ScenarioList(OptionList):
    """A line a scenario: its name, the mark of its last run, and its title where the list has all the width."""

    # Not "select", whose message would come after what the next key does.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "screen.open", "open", key_display="enter")]

    def __init__(self, rows: Sequence[ScenarioRow], glyphs: Glyphs, width: int, **options: str) -> None:
        """`width` is as many cells as it will have, as far as that is known: what fits is not drawn twice."""
        self._glyphs = glyphs
        self._marks: dict[str, tuple[Mark, str]] = {}
        """What the last run of each came to, and how long ago."""
        self._name_width = max((len(row.name) for row in rows), default=0)
        self._rows = {row.name: row for row in rows}
        self._width, self._with_titles = width, width >= _ROOM_FOR_TITLES
        self._chosen: list[str] = []
        self._by_course = False
        self._found: Mapping[str, str] | None = None
        super().__init__(*self._options_of(rows), **options)  # type: ignore[arg-type]

    @property
    def names_width(self) -> int:
        """Cells that names and marks take."""
        return self._name_width + _MARK + _BESIDE_NAME

    @property
    def chosen(self) -> str | None:
        """The name of the scenario under the cursor."""
        return self.highlighted_option.id if self.highlighted_option else None

    @property
    def picked(self) -> list[str]:
        """The names of those that were picked, in the order in which they were."""
        return list(self._chosen)

    def regroup(self) -> bool:
        """Put the scenarios in the order of the course, or under their topics again; whether it is the course."""
        self._by_course = not self._by_course
        before = self.chosen
        self._show(self._shown_rows)
        if before is not None:
            self.highlighted = self.get_option_index(before)
        return self._by_course

    def go_to(self, name: str) -> None:
        """Put the cursor on it, in sight of all."""
        self.show_only(None)
        self.highlighted = self.get_option_index(name)

    def pick(self) -> None:
        """Pick the one under the cursor, or leave it again; and go on to the next."""
        name = self.chosen
        if name is not None:
            self._chosen.remove(name) if name in self._chosen else self._chosen.append(name)
            self._redraw(name)
            self.action_cursor_down()

    def leave(self, name: str) -> None:
        """It is not picked any more."""
        if name in self._chosen:
            self._chosen.remove(name)
            self._redraw(name)

    def show_only(self, found: Mapping[str, str] | None) -> None:
        """Show those that were found, by name, each with where, the cursor on one by its name; None for all."""
        if found == self._found:
            return
        before, self._found = self.chosen, found
        rows = self._shown_rows
        self._show(rows)
        best = self._rows if found is None else by_name(found)
        names = [row.name for _, members in self._groups(rows) for row in members if row.name in best]
        if names:
            self.highlighted = self.get_option_index(before if before in names else names[0])

    def mark(self, name: str, mark: Mark, ago: str = "now") -> None:
        """Put what a run came to beside its scenario, and how long ago it was."""
        if name in self._rows and self._marks.get(name) != (mark, ago):
            self._marks[name] = mark, ago
            self._redraw(name)

    def change(self, row: ScenarioRow) -> None:
        """Show what the scenario's file says now."""
        self._rows[row.name] = row
        self._redraw(row.name)

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self.scroll_offset.y + y != self.highlighted:  # every prompt is one line
            return strip
        # A theme may show the cursor by a colour that the terminal does not: so it is a sign, and reverse video.
        sign = ">" if strip.text[:1] == " " else strip.text[:1]
        segments = Segment.apply_style([Segment(sign), *strip.crop(1)], post_style=_CURSOR)
        return Strip(segments, strip.cell_length)

    def on_click(self, event: Click) -> None:
        """A click chooses; only a second one opens."""
        place = event.style.meta.get("option")
        if place is not None and event.chain < 2:
            self.highlighted = place
            event.prevent_default()

    def on_resize(self, event: Resize) -> None:
        width = self.scrollable_content_region.width
        if width != self._width:
            self._width, self._with_titles = width, width >= _ROOM_FOR_TITLES
            for name in self._rows:
                self._redraw(name)

    def _redraw(self, name: str) -> None:
        if self._found is None or name in self._found:
            self.replace_option_prompt(name, self._prompt(self._rows[name]))

    @property
    def _shown_rows(self) -> list[ScenarioRow]:
        return [row for row in self._rows.values() if self._found is None or row.name in self._found]

    def _show(self, rows: Sequence[ScenarioRow]) -> None:
        self.clear_options()
        self.add_options(self._options_of(rows))

    def _groups(self, rows: Sequence[ScenarioRow]) -> list[tuple[str, list[ScenarioRow]]]:
        return by_course(rows) if self._by_course else by_topic(rows)

    def _options_of(self, rows: Sequence[ScenarioRow]) -> list[Option]:
        options = []
        for topic, members in self._groups(rows):
            options.append(Option(Text(self._glyphs(topic), "bold"), disabled=True))
            options += [Option(self._prompt(row), id=row.name) for row in members]
        return options

    def _prompt(self, row: ScenarioRow) -> Text:
        """Name, title where there is room, and at the right edge what the last run came to: no column ever moves."""
        mark, ago = self._marks.get(row.name, (Mark("", ""), ""))
        faint = "red" if row.error else "dim" if row.missing else ""
        line = Text(no_wrap=True, overflow=self._glyphs.overflow)
        sign = "*" if row.name in self._chosen else " "
        line.append(self._glyphs(f"{sign}{row.name:<{self._name_width}} "), faint)
        if self._with_titles:
            room = max(0, self._width - line.cell_len - _BESIDE_TITLE - bool(mark.text) * _MARKS)
            title = Text(self._glyphs(f" {_beside(row)}"), faint or "dim", no_wrap=True, end="")
            title.truncate(room, overflow=self._glyphs.overflow, pad=bool(mark.text))
            line.append_text(title)
        if not mark.text:
            return line
        line.append(self._glyphs(f"{' ' * self._with_titles}{mark.text:>{_MARK}}"), mark.style)
        if self._with_titles:
            line.append(self._glyphs(f" {mark.verdict:<{_VERDICT}}{ago:>{_AGE}}"), mark.style)
        return line


def _beside(row: ScenarioRow) -> str:
    """What the list has room for beside a name: what is wrong with it, or its title."""
    if row.error:
        return row.error
    return sentence(row.missing) if row.missing else title_beside_name(row)
