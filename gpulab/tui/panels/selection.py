"""What the tabs are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.catalog.listing import ScenarioRow
    from gpulab.features.predictions.report import Prediction
    from gpulab.features.sweeps.runs import SweepRuns
    from gpulab.session.run import Run
    from gpulab.session.settings import Settings


@dataclass(frozen=True)
class TabLayout:
    """How a tab is drawn."""

    size: tuple[int, int]
    """Columns and rows."""
    panel: str | None = None
    """Which panel of the live screen is chosen."""
    zoomed: bool = False
    """It fills the screen, also when the run has ended."""
    family: str | None = None
    """Whose roofline is drawn; None for that of the first point."""


@dataclass(frozen=True)
class Selection:
    """The scenario under the cursor with the text of its file and its last run, and how they are
    drawn.
    """

    row: ScenarioRow
    source: str
    run: Run | None
    layout: TabLayout
    prediction: Prediction | None = None
    sweep: SweepRuns | None = None
    """The one that the run is a part of."""
    settings: Settings | None = None
    """Those of its next run."""
