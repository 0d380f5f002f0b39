"""The fixes of the function under the cursor."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.features.trials.keys import KEY
from gpulab.features.trials.fix_runs import Fixes
from gpulab.options import Options, UsageError
from gpulab.report.sentences import with_reason
from gpulab.session.drive import StoppedError
from gpulab.session.look import Look
from gpulab.tui.derived import Start, launch_of, looking

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen

__all__ = ["KEY", "start_of"]


async def start_of(screen: LabScreen, entry: Entry) -> Start | str | None:
    """Look at the step; the start of the run of all fixes that apply, or why there is none."""
    runs = screen.runs
    screen.looks_at(entry)
    with looking() as look:
        fixes = await asyncio.to_thread(_fixes, entry, runs.settings(entry.name), look)
    if isinstance(fixes, str):
        return fixes
    label = f"{entry.path.stem}-fixes"
    return partial(runs.start_request, entry, fixes.request, label, fixes.gained_together)


def _fixes(entry: Entry, settings: Options, look: Look) -> Fixes | str:
    """The fixes of a step, or why there are none. It takes seconds."""
    launch, settings = launch_of(entry, settings)
    try:
        fixes = Fixes(launch, settings, look)
    except UsageError as error:
        return with_reason(str(error), error.reason)
    except StoppedError:
        return ""
    return fixes if fixes.applying else "no fix that can be applied fits this step"
