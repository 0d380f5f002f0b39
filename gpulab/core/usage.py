"""A command, or a call, that makes no sense as it was given."""

from __future__ import annotations

from gpulab.core.findings import Finding
from gpulab.core.text import plain


class UsageError(ValueError):
    """The command cannot be carried out as it was given. `reason` says what the machine lacks for
    it.
    """

    def __init__(self, message: str, reason: Finding | None = None) -> None:
        super().__init__(plain(message))  # it quotes what was given, which may hold anything
        self.reason = reason
