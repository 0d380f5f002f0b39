"""The commands of the palette in their own order: those that matter now come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.command import DiscoveryHit, Hits
from textual.system_commands import SystemCommandsProvider

from gpulab.tui.bindings import shown_keys

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen


class LabCommands(SystemCommandsProvider):
    """Textual's, which lists them by the alphabet."""

    async def discover(self) -> Hits:
        """Yield what is listed before somebody types."""
        for name, words, act, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(name, act, help=words)


def commands_of_keys(
    screen: LabScreen, left_out: set[str], run: Callable[..., Any]
) -> Iterator[SystemCommand]:
    """Yield a command for each key that can act now, those of the footer first."""
    places = {name: place for place, name in enumerate(screen.footer_keys())}
    left_out = left_out | {"commands", "list", "previous_panel"}
    for key in sorted(screen.keys, key=lambda key: places.get(key.id or "", len(places))):
        if key.id not in left_out:
            pressed = f"key {shown_keys(key.key)}, {key.id} in keys.toml"
            yield SystemCommand(key.tooltip, pressed, partial(run, key.action, screen))
