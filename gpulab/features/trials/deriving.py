"""Which parts of the step under the cursor to delay."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.core.jobs import StepPart
from gpulab.draw.blocks import Text
from gpulab.features.trials.keys import KEY
from gpulab.features.trials.runs import Parts
from gpulab.features.trials.view import NOTHING_TO_DELAY, part_name
from gpulab.options import Options, UsageError
from gpulab.report.sentences import with_reason
from gpulab.session.drive import StoppedError
from gpulab.session.look import Look
from gpulab.tui.derived import Choice, Start, launch_of, looking, one_of

__all__ = ["KEY", "start_of"]

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen


async def start_of(screen: LabScreen, entry: Entry) -> Start | str | None:
    """Look at the step, and ask which part to delay; the start of the run, why there is none, or
    None where nobody wants one.
    """
    runs = screen.runs
    screen.looks_at(entry)
    with looking() as look:
        parts = await asyncio.to_thread(_parts, entry, runs.settings(entry.name), look)
    if isinstance(parts, str):
        return parts
    delayed: list[StepPart] | None = parts.able
    if len(parts.able) > 1:
        screen.say("")
        title = f"{entry.name}: which part to delay"
        delayed = await one_of(screen, title, choices_of_parts(parts))
    if delayed is None:
        return None
    request_of = partial(parts.request, None if delayed == parts.able else delayed[0])
    return partial(runs.start_request, entry, request_of, f"{entry.path.stem}-what-if")


def choices_of_parts(parts: Parts) -> list[Choice[list[StepPart]]]:
    """All parts, then each with its share of the step; those that cannot be delayed say why."""
    choices = [Choice(Text("all parts, one after the other"), parts.able)]
    for part in sorted(parts.all, key=lambda part: -part.seconds):
        share = part.seconds / parts.step_s if parts.step_s else 0.0
        text = Text(f"{share:>6.1%}  " if share else "        ")
        text.append(part_name(part))
        text.append(f": {part.why_not}" if part.why_not else "", "dim")
        choices.append(Choice(text, None if part.why_not else [part]))
    return choices


def _parts(entry: Entry, settings: Options, look: Look) -> Parts | str:
    """The parts of a step, or why there are none. It takes seconds."""
    try:
        parts = Parts(*launch_of(entry, settings), look)
    except UsageError as error:
        return with_reason(str(error), error.reason)
    except StoppedError:
        return ""
    if parts.able:
        return parts
    return NOTHING_TO_DELAY
