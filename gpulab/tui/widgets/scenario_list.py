"""The scenarios by topic, in the order in which they are taught, each with what its last run found."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.events import Click, Resize
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpulab.model.listing import Row
from gpulab.views.listing import by_topic
from gpulab.views.text import Glyphs

_ROOM_FOR_TITLES = 60


class ScenarioList(OptionList):
    """One line a scenario: its name, the mark of its last run, and its title where the list has all the width."""

    def __init__(self, rows: Sequence[Row], glyphs: Glyphs, **options: str) -> None:
        self._glyphs = glyphs
        self._marks: dict[str, tuple[str, str]] = {}
        self._width = max((len(row.name) for row in rows), default=0)
        self._row_of = {row.name: row for row in rows}
        self._titles = False
        super().__init__(*self._of_topics(rows), **options)  # type: ignore[arg-type]

    @property
    def chosen(self) -> str | None:
        """The name of the scenario under the cursor."""
        return self.highlighted_option.id if self.highlighted_option else None

    def mark(self, name: str, text: str, style: str) -> None:
        """Put what a run found beside its scenario."""
        if name in self._row_of:
            self._marks[name] = text, style
            self.replace_option_prompt(name, self._prompt(self._row_of[name]))

    def change(self, row: Row) -> None:
        """Show what the scenario's file says now."""
        self._row_of[row.name] = row
        self.replace_option_prompt(row.name, self._prompt(row))

    def on_click(self, event: Click) -> None:
        """A click chooses; only a second one runs."""
        place = event.style.meta.get("option")
        if place is not None and event.chain < 2:
            self.highlighted = place
            event.prevent_default()

    def on_resize(self, event: Resize) -> None:
        titles = event.size.width >= _ROOM_FOR_TITLES
        if titles != self._titles:
            self._titles = titles
            for name, row in self._row_of.items():
                self.replace_option_prompt(name, self._prompt(row))

    def _of_topics(self, rows: Sequence[Row]) -> list[Option]:
        found = []
        for topic, members in by_topic(rows):
            found.append(Option(Text(self._glyphs(topic), "bold"), disabled=True))
            found += [Option(self._prompt(row), id=row.name) for row in members]
        return found

    def _prompt(self, row: Row) -> Text:
        text, style = self._marks.get(row.name, ("", ""))
        faint = "red" if row.error else "dim" if row.missing else ""
        title = row.error or row.missing or row.title.partition(": ")[2] or row.title
        line = Text(no_wrap=True, overflow=self._glyphs.overflow)
        line.append(self._glyphs(f" {row.name:<{self._width}}"), faint)
        line.append(self._glyphs(f"{text:>7}"), style)
        if self._titles:
            line.append(self._glyphs(f"  {title}"), faint or "dim")
        return line
