"""The tabs of a scenario, in their order. Each is a file of this folder: `content` draws it, `changing` spares that.

A new tab is a line here and its file.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpulab.protocol.listing import ScenarioRow
    from gpulab.session.run import Run
    from gpulab.views.text import Glyphs

TABS = {"lesson": "Lesson", "result": "Result", "roofline": "Roofline", "log": "Log"}
"""Titles by name."""


@dataclass(frozen=True)
class Selection:
    """What the tabs are about: the scenario under the cursor with its last run, and how they are drawn."""

    row: ScenarioRow
    run: Run | None
    glyphs: Glyphs
    size: tuple[int, int]
    """Columns and rows of the tab."""
    family: str | None = None
    """Whose roofline is drawn; None for that of the first point."""


def content_of(tab: str, selection: Selection) -> RenderableType:
    """What a tab shows."""
    content: RenderableType = _module(tab).content(selection)
    return content


def changing_in(tab: str, run: Run | None) -> Hashable:
    """What must have changed for a tab to be laid out again."""
    changing: Hashable = None if run is None else _module(tab).changing(run)
    return changing


def follows_end(tab: str) -> bool:
    """Whether a tab stays at its end as lines come in."""
    return tab == "log"


def _module(tab: str):  # type: ignore[no-untyped-def]  # noqa: ANN202
    # Imported when it is first shown: the first frame of the screen has none of them.
    return import_module(f"gpulab.tui.panels.{tab}")
