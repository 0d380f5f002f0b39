"""The commands of the palette in their own order: those that matter now come first."""

from __future__ import annotations

from textual.command import DiscoveryHit, Hits
from textual.system_commands import SystemCommandsProvider


class LabCommands(SystemCommandsProvider):
    """Textual's, which lists them by the alphabet."""

    async def discover(self) -> Hits:
        """Yield what is listed before somebody types."""
        for name, words, act, _ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(name, act, help=words)
