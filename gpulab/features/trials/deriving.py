"""Runs derived from the step under the cursor: its fixes, and its parts with delays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from gpulab.catalog.catalog import Entry
from gpulab.core.jobs import StepPart
from gpulab.draw.blocks import Text
from gpulab.features.trials.runs import Fixes, Parts
from gpulab.features.trials.view import part_name
from gpulab.options import Options, UsageError
from gpulab.report.sentences import with_reason
from gpulab.session.drive import StoppedError
from gpulab.session.launch import Launch
from gpulab.session.look import Look
from gpulab.tui.derived import Start, launch_of, looking, one_of

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen

T = TypeVar("T", Fixes, Parts)
_Make = Callable[[Launch, Options, Look], T]


async def _start_of_fixes(screen: LabScreen, entry: Entry) -> Start | str:
    """The start of the run of all fixes that apply, or why there is none."""
    fixes = await _looked(screen, entry, Fixes)
    if isinstance(fixes, str):
        return fixes
    label = f"{entry.path.stem}-fixes"
    start = screen.runs.start_request
    return partial(start, entry, fixes.request, label, fixes.gained_together)


async def _start_of_parts(screen: LabScreen, entry: Entry) -> Start | str | None:
    """Ask which part to delay; the start of the run, why there is none, or None where nobody wants
    one.
    """
    parts = await _looked(screen, entry, Parts)
    if isinstance(parts, str):
        return parts
    delayed: list[StepPart] | None = parts.able
    if len(parts.able) > 1:
        screen.say("")
        title = f"{entry.name}: which part to delay"
        delayed = await one_of(screen, title, _choices(parts))
    if delayed is None:
        return None
    request_of = partial(parts.request, None if delayed == parts.able else delayed[0])
    return partial(screen.runs.start_request, entry, request_of, f"{entry.path.stem}-what-if")


STARTS = {"F": _start_of_fixes, "w": _start_of_parts}
"""By the key."""


async def _looked(screen: LabScreen, entry: Entry, make: _Make[T]) -> T | str:
    """What `make` saw of a step, or why it saw nothing."""
    screen.say(f"{entry.name}: analyzing a step ...")
    settings = screen.runs.settings(entry.name)
    with looking() as look:
        return await asyncio.to_thread(_made, make, entry, settings, look)


def _made(make: _Make[T], entry: Entry, settings: Options, look: Look) -> T | str:
    """It takes seconds."""
    try:
        seen = make(*launch_of(entry, settings), look)
    except UsageError as error:
        return with_reason(str(error), error.reason)
    except StoppedError:
        return ""
    return seen if seen.able else seen.NOTHING


def _choices(parts: Parts) -> list[tuple[Text, list[StepPart] | None]]:
    """All parts, then each with its share of the step; those that cannot be delayed say why."""
    choices: list[tuple[Text, list[StepPart] | None]] = [
        (Text("all parts, one after the other"), parts.able)
    ]
    for part in sorted(parts.all, key=lambda part: -part.seconds):
        share = part.seconds / parts.step_s if parts.step_s else 0.0
        text = Text(f"{share:>6.1%}  " if share else "        ")
        text.append(part_name(part))
        text.append(f": {part.why_not}" if part.why_not else "", "dim")
        choices.append((text, None if part.why_not else [part]))
    return choices
