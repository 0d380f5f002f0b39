"""The commands of the palette in their own order: those that matter now come first."""

from __future__ import annotations

import asyncio
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


def claims_command(lab: LabScreen) -> SystemCommand:
    """Return the command that opens what the sources claim, beside what was measured."""
    words = "what the sources say, beside what was measured here or recorded"
    return SystemCommand("claims of the sources", words, partial(_open_claims, lab))


def _open_claims(lab: LabScreen) -> None:
    if lab.runs.running is not None:
        return lab.refuse("claims: reading the recordings would disturb this run")
    lab.say("reading runs and recordings")
    lab.run_worker(_show_claims(lab), group="claims", exclusive=True)


async def _show_claims(lab: LabScreen) -> None:
    from gpulab.tui.screens.page import claims_page

    lab.app.push_screen(await asyncio.to_thread(claims_page))
    lab.say("")
