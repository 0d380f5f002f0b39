"""The parts of a result that features show: functions of their views, looked up by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpulab.draw.blocks import Block
from gpulab.features import present
from gpulab.report.feature import Section, View
from gpulab.report.report import RunReport

TABLES = (
    Section.RESOURCES,
    Section.ALONE,
    Section.TIME,
    Section.OPERATIONS,
    Section.TRACES,
    Section.JOBS,
)
"""In the order in which they are read."""


def part(place: str, *shown: Any, **how: Any) -> Any:
    """What a function of a feature makes of its arguments, such as "alone.view:alone" of a
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


def tables_of(report: RunReport, shown: Iterable[View], *more: Any) -> Iterator[Block]:
    """Those of these views in which there is something."""
    for view in shown:
        table = part(view.place, report, *more)
        if table is not None:
            yield table
