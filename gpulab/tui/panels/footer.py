"""The last line of the screen: the keys that matter now."""

from __future__ import annotations

from textual.message import Message
from textual.widgets import Footer


class KeysFooter(Footer):
    """Textual's, made again only where its keys are others: focus, mount and refresh each ask for
    it, which made it four times before the first frame.
    """

    class Drawn(Message):
        """It is on screen, with its keys."""

    _shown: object = None

    def __init__(self) -> None:
        super().__init__(show_command_palette=False)

    async def recompose(self) -> None:
        """Make it again where its keys are others, unless its screen was left meanwhile."""
        if not self.is_attached:
            return
        active = self.screen.active_bindings.values()
        shown = [(each.binding, each.enabled) for each in active if each.binding.show]
        if shown == self._shown:
            return
        self._shown = shown
        await super().recompose()
        self.call_after_refresh(self.post_message, self.Drawn())
