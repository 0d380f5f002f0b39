"""The tabs of a scenario, in their order.

A new tab is a line here, and its file: `content(selection)` draws it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from gpulab.core.events import Planned, StageStarted
from gpulab.features import present

if TYPE_CHECKING:
    from gpulab.catalog.catalog import ScenarioRow
    from gpulab.draw.blocks import Block
    from gpulab.features.predictions.report import Prediction
    from gpulab.features.sweeps.runs import SweepRuns
    from gpulab.options import Options
    from gpulab.report.report import RunReport
    from gpulab.session.run import Run


@dataclass(frozen=True)
class Selection:
    """The scenario under the cursor with the text of its file and its last run, and how they are
    drawn.
    """

    row: ScenarioRow
    source: str
    run: Run | None
    size: tuple[int, int]
    """Columns and rows."""
    panel: str | None = None
    """Which panel of the live screen is chosen."""
    zoomed: bool = False
    """It fills the screen, also when the run has ended."""
    family: str | None = None
    """Whose roofline is drawn; None for that of the first point."""
    answers: bool = False
    """Of the questions of a lesson."""
    expected: bool = True
    """What its table expects of each variant."""
    prediction: Prediction | None = None
    sweep: SweepRuns | None = None
    """The one that the run is a part of."""
    together: RunReport | None = None
    """The run of all fixes that gained in this one."""
    settings: Options | None = None
    """Those of its next run."""
    age: str = ""
    """How old the run is, where it is an earlier one, and what has been since; without a run the
    age of one that is being read.
    """
    earlier: Mapping[str, str] = field(default_factory=dict)
    """What is known of its earlier runs; of a saved run, where it was made."""
    saved: bool = False
    """All of it comes from a run file."""


@dataclass(frozen=True)
class Tab:
    """One tab, which a module of its name draws."""

    title: str
    about: str
    """What it is, in a sentence or two."""
    feature: str | None = None
    """Without whose folder there is no such tab."""
    follows_end: bool = False
    """It stays at its end as lines come in."""


def content(name: str, selection: Selection) -> Block:
    """Return the block that a tab shows. Its module is imported when it is first shown: the first
    frame of the screen needs none of them.
    """
    shown: Block = import_module(f"gpulab.tui.panels.{name}").content(selection)
    return shown


def changing(run: Run | None) -> Hashable:
    """Return what must change for a tab to be laid out again: at most once a second, twice before
    it measures, and at a new stage, until the run has ended.
    """
    if run is None:
        return None
    if run.ended:
        return run.source.path
    stage = run.state.last(StageStarted)
    looks = int(run.source.now() * (1 if run.state.last(Planned) else 2))
    return run.source.path, id(stage), looks, len(run.state.variants)


_ALL = {
    "lesson": Tab(
        "Lesson",
        "What the scenario teaches, its variants, what its source claims, and what can be "
        "changed: p changes it.",
    ),
    "code": Tab(
        "Code",
        "The source of every variant, with - and + where it differs from the baseline, and the "
        "operations that each then runs. After a failure the line is marked. e opens the file.",
        feature="code",
    ),
    "result": Tab(
        "Result",
        "While it runs: its panels; tab chooses one, z lets it fill the screen, and help is then "
        "about that one. After it: the verdict first, then the picture, what limits it, whether "
        "to believe it, and all tables.",
    ),
    "roofline": Tab(
        "Roofline",
        "Work per byte to the right, work per second upwards. The slope is the memory of this "
        "device and the flat line its arithmetic, both measured; a variant below them is held "
        "back by something else, said below the plot.",
    ),
    "log": Tab(
        "Log",
        "What the scenario printed, and what went wrong in full.",
        follows_end=True,
    ),
    "bill": Tab(
        "Bill",
        "Every second of a step, or of a program, booked once: to an operation, a kernel or a "
        "line. Below it the questions with which performance guides end, with the share of each.",
        feature="bill",
    ),
}
TABS = {name: tab for name, tab in _ALL.items() if tab.feature is None or present(tab.feature)}
"""By name; their keys are 1, 2, ... in this order."""
