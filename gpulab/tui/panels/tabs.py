"""The tabs of a scenario, in their order.

A new tab is a line here, and its file: `content(selection)` draws it, `changing(run)` is what must have changed for it
to be laid out again.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpulab.session.run import Run
    from gpulab.tui.panels.selection import Selection


@dataclass(frozen=True)
class Tab:
    """One tab. Its module is imported when it is first shown: the first frame of the screen needs none of them."""

    title: str
    module: str
    follows_end: bool = False
    """It stays at its end as lines come in."""

    def content(self, selection: Selection) -> RenderableType:
        """What it shows."""
        content: RenderableType = import_module(self.module).content(selection)
        return content

    def changing(self, run: Run | None) -> Hashable:
        """What must have changed for it to be laid out again."""
        changing: Hashable = None if run is None else import_module(self.module).changing(run)
        return changing


TABS = {
    "lesson": Tab("Lesson", "gpulab.tui.panels.lesson"),
    "code": Tab("Code", "gpulab.tui.panels.code"),
    "result": Tab("Result", "gpulab.tui.panels.result"),
    "roofline": Tab("Roofline", "gpulab.tui.panels.roofline"),
    "log": Tab("Log", "gpulab.tui.panels.log", follows_end=True),
}
"""By name; their keys are 1, 2, ... in this order."""
