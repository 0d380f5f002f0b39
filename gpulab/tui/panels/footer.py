"""The last line of the screen: the keys that matter now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from textual.binding import ActiveBinding, Binding
from textual.message import Message
from textual.widgets import Footer

from gpulab.tui.bindings import VITAL


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


def fitting(keys: Sequence[Binding], words: Mapping[str, str], room: int) -> dict[str, str]:
    """Return the ids of keys with their words, as many as have room in so many cells: the vital
    ones, and of the others the first. `words`: those that are others now.
    """
    room += 1  # the blank after the last one need not be seen
    kept = set()
    for key in sorted(keys, key=lambda key: key.id not in VITAL):
        shown = key.key_display or key.key.partition(",")[0]
        room -= len(shown) + len(words.get(key.id or "", key.description)) + 3
        if room < 0:
            break
        kept.add(key.id)
    names = {key.id or "": key.description for key in keys if key.id in kept}
    return {name: words.get(name, word) for name, word in names.items()}


def in_footer(
    found: Mapping[str, ActiveBinding], words: Mapping[str, str]
) -> dict[str, ActiveBinding]:
    """Return the bindings, first those with words in the footer, which it shows in their order."""
    keys = {active.binding.id: key for key, active in reversed(list(found.items()))}
    first = {keys[name]: word for name, word in words.items() if name in keys}
    bindings = {}
    for key in [*first, *(key for key in found if key not in first)]:
        binding = found[key].binding
        shown = replace(binding, show=key in first, description=first.get(key, binding.description))
        bindings[key] = found[key]._replace(binding=shown)
    return bindings
