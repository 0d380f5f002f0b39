"""The parts of a result that features show: functions of their views, looked up by their names."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from rich.console import RenderableType

from gpulab.features import present
from gpulab.report.report import RunReport

OPERATIONS = "goodput.operations:operations"
MEMORY = "memory.view:memory"
TABLES: Sequence[str] = (
    "ranks.view:ranks",
    MEMORY,
    "tuning.view:tunings",
    "kernels.view:kernels",
    "telemetry.view:solo_runs",
    "goodput.view:phases",
    "goodput.view:goodput",
    OPERATIONS,
    "goodput.view:traces",
    "goodput.view:job_goodput",
)
"""In the order in which they are read."""


def part(place: str, *shown: Any, **how: Any) -> Any:
    """What a function of a feature makes of its arguments, such as "late.view:job_ranks" of a
    report; None where that feature was taken out.
    """
    module_name, _, function = place.partition(":")
    module = present(module_name)
    return getattr(module, function)(*shown, **how) if module else None


def panel(place: str, run: Any, *, width: int, height: int | None = None) -> Any:
    """A panel of the live screen, such as "live.times:TIMES"; None where it was taken out."""
    name, _, constant = place.partition(":")
    module = present(name)
    if module is None:
        return None
    drawn = getattr(module, constant)
    return part("live.screen:panel_view", drawn, run, width=width, height=height)


def tables_of(report: RunReport, places: Container[str]) -> Iterator[RenderableType]:
    """Those of these tables that there is something in."""
    for place in TABLES:
        table = part(place, report) if place in places else None
        if table is not None:
            yield table
