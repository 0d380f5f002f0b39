"""What the lab can do: one folder for each feature, which may be taken out, and the order of those
that have a part of the report.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpulab.core.events import Event
    from gpulab.draw.blocks import Block
    from gpulab.report.feature import Feature, Section, View
    from gpulab.report.report import RunReport

_ORDER = (
    "telemetry",  # which samples do not count: all else is of those that are left
    "bill",  # where the time of a program's processes went: the answer, so it is read first
    "program",  # what the time of its step is
    "late",  # which rank that step waits for
    "first_steps",  # where they are the lesson, what the time of a step is
    "ranks",
    "memory",
    "tuning",
    "kernels",
    "counters",
    "roofline",  # of that time; what is faster than its device is invalid, whatever else it is
    "counters_in_time",  # beside the roof
    "goodput",  # its efficiency is of the roofline's point
    "alone",  # reads solo runs with their clocks; what it contradicts has no verdict
    "history",  # of the comparisons that are left
    "checks",  # what a comparison is worth, by all that was found before
    "trials",  # what each fix gained, and what each part would
)


@cache
def features() -> tuple[Feature, ...]:
    """In the order in which the fold and the report call them, at each step the first one first."""
    # imported at the first call: a worker imports from these folders, and folds nothing
    reports = (present(f"{name}.report") for name in _ORDER)
    return tuple(report.FEATURE for report in reports if report)


def views(*sections: Section) -> list[View]:
    """Return what features show there: section by section, in the order of the features."""
    every = [view for feature in features() for view in feature.views]
    return [view for section in sections for view in every if view.section == section]


def part(place: str, *shown: Any, **how: Any) -> Any:
    """Return what a function of a feature makes of its arguments, such as "alone.view:alone" of a
    report; None where that feature was taken out.
    """
    module_name, _, function = place.partition(":")
    module = present(module_name)
    return getattr(module, function)(*shown, **how) if module else None


def blocks_of(shown: Iterable[View], report: RunReport, *more: Any) -> list[Block]:
    """Return what these views show of a report, of those in which there is something."""
    blocks = (part(view.place, report, *more) for view in shown)
    return [block for block in blocks if block is not None]


def folders() -> list[str]:
    """The names of the features that are there."""
    return [module.name for module in iter_modules(__path__)]


class TakenOutError(Exception):
    """A feature was asked for whose folder is not there."""


def needed(name: str) -> ModuleType:
    """A module of a feature that was asked for. TakenOutError."""
    module = present(name)
    if module is None:
        raise TakenOutError(taken_out(name.partition(".")[0]))
    return module


def taken_out(feature: str) -> str:
    """Why there is nothing of a feature."""
    return f"this gpulab has no {feature}: it was taken out"


def present(name: str) -> ModuleType | None:
    """A module of a feature, such as "ranks.view"; None where its folder was taken out, or has none
    of that name.
    """
    full_name = f"{__name__}.{name}"
    try:
        return import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name not in (full_name, full_name.rpartition(".")[0]):
            raise
        return None


def modules(name: str) -> list[ModuleType]:
    """The modules of that name, of the features that have one."""
    there = [folder for path in __path__ for folder in sorted(Path(path).glob(f"*/{name}.py"))]
    of_features = (present(f"{file.parent.name}.{name}") for file in there)
    return [module for module in of_features if module]


def event_types() -> list[type[Event]]:
    """The events of the features that are there."""
    from gpulab.core.events import Event  # when the first is read: a listing reads none

    found: list[type[Event]] = []
    for module in modules("events"):
        for kind in vars(module).values():
            is_own = isinstance(kind, type) and kind.__module__ == module.__name__
            if is_own and issubclass(kind, Event):
                found.append(kind)
    return found
