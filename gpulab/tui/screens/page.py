"""A box in front of the screen, with its keys in its frame: a text to be read, and the help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widget import Widget

from gpulab.draw.blocks import Block, Group, Text
from gpulab.features.goodput.operation_table import full_tables
from gpulab.guide.help import BESIDE, help_view
from gpulab.report.report import RunReport
from gpulab.session.run_files import at_home
from gpulab.tui.bindings import keymap_path, own_bindings
from gpulab.tui.panels.pane import Pane


def name_box(box: Widget, title: str, **words: str) -> None:
    """Put a title into the frame of a box, and the keys of its screen; `words`: what an action does
    now, by its name.
    """
    screen = box.screen
    shown = [each for each in own_bindings(screen) if each.show]
    keys = {}
    for each in reversed(shown):
        key = screen.app.get_key_display(replace(each, key=each.key.partition(",")[0]))
        keys[each.action] = f"{key} {words.get(each.action, each.description)}"
    box.border_title = title
    box.border_subtitle = " · ".join(reversed(keys.values()))


class Page(ModalScreen[None]):
    """`content` draws it for a width in cells."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "back", tooltip="back"),
        Binding("q", "app.ask_quit", "quit", show=False, tooltip="quit"),
    ]

    def __init__(self, title: str, content: Callable[[int], Block], *, wide: bool = False) -> None:
        """`wide`: it takes all of the screen."""
        super().__init__(classes="-full" if wide else "")
        self._title, self._content = title, content

    def compose(self) -> ComposeResult:
        yield Pane(id="page", classes="box")

    def on_mount(self) -> None:
        self.query_one("#page").focus()

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        page = self.query_one("#page", Pane)
        name_box(page, self._title)
        page.show(self._content(page.room))


def operations_page(report: RunReport) -> Page | None:
    """The operations of each variant that was profiled; None where none was."""
    tables = full_tables(report, None)
    if not tables:
        return None
    note = Text("seconds, calls, FLOPs and bytes are those of a step", "dim")
    return Page("operations", lambda _: Group(*tables, note), wide=True)


def claims_page() -> Page:
    """What the sources claim, beside what was measured: reads runs and recordings, for seconds."""
    from gpulab.features.claims.runs import claims
    from gpulab.features.claims.view import topic_claims

    topics = list(claims())
    now = datetime.now(UTC)

    def content(width: int) -> Block:
        parts = (topic_claims(topic, members, now, width) for topic, members in topics)
        note = Text("what the columns are: gpulab --guide claims", "dim")
        return Group(*chain.from_iterable(parts), note)

    return Page("claims of the sources", content, wide=True)


def help_page(
    about: str,
    shown: str,
    keys: Sequence[tuple[str, str]],
    *,
    of_the_list: bool,
    beside: bool = False,
) -> Page:
    """For a screen that shows this text, with its keys and what they do; `beside`: what no key is
    for too.
    """
    path = at_home(keymap_path())
    changed_by = f"{path} changes the keys of the list; of these, only that of this page"
    if of_the_list:
        changed_by = f'{path} changes them, with lines such as: run = "ctrl+r"; ids as in ctrl+p'
    more = BESIDE if beside else ()
    return Page("keys and words", lambda width: help_view(about, shown, keys, changed_by, more))
