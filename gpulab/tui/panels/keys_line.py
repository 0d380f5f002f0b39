"""The last line of a screen: the keys that are of use there, which the mouse may press too.

Textual's footer is a widget a key: laying those out takes half as long as all of the first screen.
"""

from __future__ import annotations

from rich.style import Style
from rich.text import Text
from textual.binding import Binding
from textual.events import Resize
from textual.widgets import Input

from gpulab.tui.panels.pane import Pane
from gpulab.views.text import Glyphs

_BETWEEN = "  "


class KeysLine(Pane, can_focus=False):
    """Those of the bindings with the focus that are to be shown; what has no room is left out, the last ones first."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(classes="keys")
        self._glyphs = glyphs

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self._show_keys())
        self.call_after_refresh(self._show_keys)

    def on_resize(self, event: Resize) -> None:
        self._show_keys()

    def _show_keys(self) -> None:
        text, shown = Text(no_wrap=True), set()
        if not self.is_attached or not self.screen.is_current:
            return
        typing = isinstance(self.screen.focused, Input)  # which has Enter for itself, but hands it on
        own = [binding for binding in self.screen.BINDINGS if typing and isinstance(binding, Binding)]
        active = [entry.binding for entry in self.screen.active_bindings.values() if entry.enabled]
        for binding in [*own, *active]:
            if not binding.show or binding.action in shown:
                continue
            shown.add(binding.action)
            key, what = self._glyphs(self.app.get_key_display(binding)), self._glyphs(binding.description)
            if text.cell_len + len(_BETWEEN) + len(key) + 1 + len(what) > self.size.width:
                break
            action = binding.action if "." in binding.action else f"screen.{binding.action}"
            click = Style.from_meta({"@click": action})
            text.append(_BETWEEN if shown - {binding.action} else " ")
            text.append(key, Style(bold=True, color="cyan") + click)
            text.append(f" {what}", click)
        self.show(text)
