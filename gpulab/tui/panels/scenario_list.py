"""The scenarios by topic, in the order in which they are taught, each with what its last run came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.strip import Strip
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from gpulab.protocol.listing import ScenarioRow
from gpulab.views.findings import sentence
from gpulab.views.listing import by_topic, title_beside_name
from gpulab.views.text import Glyphs

_ROOM_FOR_TITLES = 60
_MARK, _BESIDE_NAME = 7, 4
"""Cells of a mark, and of what stands around a name and its mark."""
_CURSOR = Style(color="default", bgcolor="default", reverse=True)


class ScenarioList(OptionList):
    """A line a scenario: its name, the mark of its last run, and its title where the list has all the width."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "select", "open")]

    def __init__(self, rows: Sequence[ScenarioRow], glyphs: Glyphs, **options: str) -> None:
        self._glyphs = glyphs
        self._marks: dict[str, tuple[str, str]] = {}
        self._name_width = max((len(row.name) for row in rows), default=0)
        self._rows = {row.name: row for row in rows}
        self._with_titles = False
        super().__init__(*self._options_of(rows), **options)  # type: ignore[arg-type]

    @property
    def names_width(self) -> int:
        """Cells that names and marks take."""
        return self._name_width + _MARK + _BESIDE_NAME

    @property
    def chosen(self) -> str | None:
        """The name of the scenario under the cursor."""
        return self.highlighted_option.id if self.highlighted_option else None

    def mark(self, name: str, text: str, style: str) -> None:
        """Put what a run came to beside its scenario."""
        if name in self._rows:
            self._marks[name] = text, style
            self.replace_option_prompt(name, self._prompt(self._rows[name]))

    def change(self, row: ScenarioRow) -> None:
        """Show what the scenario's file says now."""
        self._rows[row.name] = row
        self.replace_option_prompt(row.name, self._prompt(row))

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self.scroll_offset.y + y != self.highlighted:  # every prompt is one line
            return strip
        # A theme may show the cursor by a colour that the terminal does not: so it is a sign, and reverse video.
        segments = Segment.apply_style([Segment(">"), *strip.crop(1)], post_style=_CURSOR)
        return Strip(segments, strip.cell_length)

    def on_click(self, event: Click) -> None:
        """A click chooses; only a second one opens."""
        place = event.style.meta.get("option")
        if place is not None and event.chain < 2:
            self.highlighted = place
            event.prevent_default()

    def on_resize(self, event: Resize) -> None:
        with_titles = event.size.width >= _ROOM_FOR_TITLES
        if with_titles != self._with_titles:
            self._with_titles = with_titles
            for name, row in self._rows.items():
                self.replace_option_prompt(name, self._prompt(row))

    def _options_of(self, rows: Sequence[ScenarioRow]) -> list[Option]:
        options = []
        for topic, members in by_topic(rows):
            options.append(Option(Text(self._glyphs(topic), "bold"), disabled=True))
            options += [Option(self._prompt(row), id=row.name) for row in members]
        return options

    def _prompt(self, row: ScenarioRow) -> Text:
        mark, style = self._marks.get(row.name, ("", ""))
        faint = "red" if row.error else "dim" if row.missing else ""
        line = Text(no_wrap=True, overflow=self._glyphs.overflow)
        line.append(self._glyphs(f" {row.name:<{self._name_width}} "), faint)
        line.append(self._glyphs(f"{mark:>{_MARK}}"), style)
        if self._with_titles:
            line.append(self._glyphs(f"  {_beside(row)}"), faint or "dim")
        return line


def _beside(row: ScenarioRow) -> str:
    """What the list has room for beside a name: what is wrong with it, or its title."""
    if row.error:
        return row.error
    return sentence(row.missing) if row.missing else title_beside_name(row)
