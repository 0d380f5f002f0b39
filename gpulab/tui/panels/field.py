"""A line to type into, in which keys keep their order on a slow line, where several arrive at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.events import Key
from textual.widgets import Input


class InputLine(Input):
    """`on_keys`: what a key does instead of being typed.

    Textual queues keys at the widget that had the focus when they came. One that moves the focus
    would leave those behind it in the wrong field: they are given back to the app, and go where the
    focus is by then.
    """

    on_keys: Mapping[str, Callable[[], object]]

    def __init__(self, value: str = "", *, placeholder: str, id: str) -> None:
        super().__init__(value, placeholder=placeholder, id=id, compact=True)
        self.cursor_blink = False  # bytes at rest
        self.on_keys = {
            "down": lambda: self.screen.focus_next(InputLine),
            "up": lambda: self.screen.focus_previous(InputLine),
        }

    def _on_key(self, event: Key) -> None:  # type: ignore[override]
        action = self.on_keys.get(event.key)
        elsewhere = self.screen.focused is not self
        if elsewhere or action:
            event.stop()
            event.prevent_default()
        if elsewhere:
            self.app.post_message(Key(event.key, event.character))
        elif action:
            action()
