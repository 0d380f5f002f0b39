"""Which fixes of the function under the cursor to try."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.draw.blocks import Text
from gpulab.features.fixes.declarations import FIXES
from gpulab.features.fixes.keys import KEY
from gpulab.features.fixes.runs import Fixes
from gpulab.options import Options, UsageError
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence, with_reason
from gpulab.session.drive import StoppedError
from gpulab.session.look import Look
from gpulab.tui.derived import Choice, Start, launch_of, looking, one_of

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen

__all__ = ["KEY", "start_of"]


async def start_of(screen: LabScreen, entry: Entry) -> Start | str | None:
    """Ask for which finding, and look at the step; the start of the run, why there is none, or None
    where nobody wants one.
    """
    runs = screen.runs
    run = runs.of(entry.name)
    choices = choices_of_fixes(run.report if run else None)
    names = await one_of(screen, f"{entry.name}: which fixes to try", choices)
    if names is None:
        return None
    screen.looks_at(entry)
    with looking() as look:
        fixes = await asyncio.to_thread(_fixes, entry, runs.settings(entry.name), look, names)
    if isinstance(fixes, str):
        return fixes
    label = f"{entry.path.stem}-fixes"
    return partial(runs.start_request, entry, fixes.request, label, fixes.gained_together)


def choices_of_fixes(report: RunReport | None) -> list[Choice[list[str]]]:
    """All fixes, then the findings of the step that fixes answer, each with the names of these."""
    choices: list[Choice[list[str]]] = [Choice(Text("all fixes that apply"), [])]
    if report is None or not report.variants:
        return choices
    for advice in getattr(report.variants[0], "advice", ()):
        names = [fix.name for fix in FIXES if advice.finding.code in fix.answers]
        if not names:
            continue
        text = Text(sentence(advice.finding))
        text.append(f"\n  {', '.join(names)}", "dim")
        choices.append(Choice(text, names))
    return choices


def _fixes(entry: Entry, settings: Options, look: Look, names: Sequence[str]) -> Fixes | str:
    """The fixes of a step, or why there are none. It takes seconds."""
    launch, settings = launch_of(entry, settings)
    try:
        fixes = Fixes(launch, settings, look, names)
    except UsageError as error:
        return with_reason(str(error), error.reason)
    except StoppedError:
        return ""
    if fixes.applying:
        return fixes
    reasons = "; ".join(f"{name}: {fixes.why_not[name]}" for name in names)
    return reasons or "no fix that can be applied fits this step"
