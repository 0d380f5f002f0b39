"""What the tabs are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.protocol.listing import ScenarioRow
    from gpulab.session.run import Run
    from gpulab.views.text import Glyphs


@dataclass(frozen=True)
class Selection:
    """The scenario under the cursor with its last run, and how they are drawn."""

    row: ScenarioRow
    run: Run | None
    glyphs: Glyphs
    size: tuple[int, int]
    """Columns and rows of the tab."""
    family: str | None = None
    """Whose roofline is drawn; None for that of the first point."""
