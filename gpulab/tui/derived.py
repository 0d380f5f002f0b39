"""Runs that the lab derives from the scenario under the cursor: fixes are tried, parts delayed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from rich.text import Text

from gpulab.catalog.catalog import Entry
from gpulab.core.jobs import StepPart
from gpulab.features import needed, present
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence, with_reason
from gpulab.session.derived import Fixes, Parts
from gpulab.session.drive import StoppedError
from gpulab.session.launch import Launch
from gpulab.session.look import Look
from gpulab.session.settings import Settings, UsageError
from gpulab.tui.screens.choose import ChooseScreen

if TYPE_CHECKING:
    from gpulab.tui.screens.lab import LabScreen

T = TypeVar("T")
Start = Callable[[], str | None]
"""Starts a run; returns the problem where that cannot be."""


@dataclass(frozen=True)
class Choice(Generic[T]):
    """A line of a list. `value` is None where it cannot be chosen."""

    text: Text
    value: T | None


async def fixes_to_try(screen: LabScreen, entry: Entry) -> Start | str | None:
    """Ask for which finding, and look at the step; the start of the run, why there is none, or None
    where nobody wants one.
    """
    runs = screen.runs
    run = runs.of(entry.name)
    choices = choices_of_fixes(run.report if run else None)
    names = await _one_of(screen, f"{entry.name}: which fixes to try", choices)
    if names is None:
        return None
    screen.looks_at(entry)
    with _looking() as look:
        fixes = await asyncio.to_thread(_fixes, entry, runs.settings(entry.name), look, names)
    return fixes if isinstance(fixes, str) else partial(runs.start_fixes, entry, fixes)


async def parts_to_delay(screen: LabScreen, entry: Entry) -> Start | str | None:
    """Look at the step, and ask which part; returns the same."""
    runs = screen.runs
    screen.looks_at(entry)
    with _looking() as look:
        parts = await asyncio.to_thread(_parts, entry, runs.settings(entry.name), look)
    if isinstance(parts, str):
        return parts
    delayed: list[StepPart] | None = parts.able
    if len(parts.able) > 1:
        screen.say("")
        title = f"{entry.name}: which part to delay"
        delayed = await _one_of(screen, title, choices_of_parts(parts))
    if delayed is None:
        return None
    request_of = partial(parts.request, None if delayed == parts.able else delayed[0])
    return partial(runs.start_request, entry, request_of, f"{entry.path.stem}-what-if")


@contextmanager
def _looking() -> Iterator[Look]:
    """Ends the look with whoever waits for it: asyncio does not end before its threads."""
    look = Look()
    try:
        yield look
    finally:
        look.cancel()


async def _one_of(screen: LabScreen, title: str, choices: Sequence[Choice[T]]) -> T | None:
    """What is chosen of them; where there is only one, that one at once."""
    if len(choices) == 1:
        return choices[0].value
    lines = [(choice.text, choice.value is not None) for choice in choices]
    place = await screen.app.push_screen_wait(ChooseScreen(title, lines))
    return None if place is None else choices[place].value


def choices_of_fixes(report: RunReport | None) -> list[Choice[list[str]]]:
    """All fixes, then the findings of the step that fixes answer, each with the names of these."""
    choices: list[Choice[list[str]]] = [Choice(Text("all fixes that apply"), [])]
    fixes = present("fixes.declarations")
    if fixes is None or report is None or not report.variants:
        return choices
    for advice in getattr(report.variants[0], "advice", ()):
        names = [fix.name for fix in fixes.FIXES if advice.finding.code in fix.answers]
        if not names:
            continue
        text = Text(sentence(advice.finding))
        text.append(f"\n  {', '.join(names)}", "dim")
        choices.append(Choice(text, names))
    return choices


def choices_of_parts(parts: Parts) -> list[Choice[list[StepPart]]]:
    """All parts, then each with its share of the step; those that cannot be delayed say why."""
    part_name = needed("what_if.view").part_name
    choices = [Choice(Text("all parts, one after the other"), parts.able)]
    for part in sorted(parts.all, key=lambda part: -part.seconds):
        share = part.seconds / parts.step_s if parts.step_s else 0.0
        text = Text(f"{share:>6.1%}  " if share else "        ")
        text.append(part_name(part))
        text.append(f": {part.why_not}" if part.why_not else "", "dim")
        choices.append(Choice(text, None if part.why_not else [part]))
    return choices


def _fixes(entry: Entry, settings: Settings, look: Look, names: Sequence[str]) -> Fixes | str:
    """The fixes of a step, or why there are none. It takes seconds."""
    launch, settings = _launch(entry, settings)
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


def _parts(entry: Entry, settings: Settings, look: Look) -> Parts | str:
    """The parts of a step, or why there are none. It takes seconds."""
    try:
        parts = Parts(*_launch(entry, settings), look)
    except UsageError as error:
        return with_reason(str(error), error.reason)
    except StoppedError:
        return ""
    if parts.able:
        return parts
    nothing: str = needed("what_if.view").NOTHING_TO_DELAY
    return nothing


def _launch(entry: Entry, settings: Settings) -> tuple[Launch, Settings]:
    """With those of the chosen parameters that it has."""
    launch = Launch(entry, (entry.function,) if entry.function else ())
    scenario = entry.scenario
    known = scenario.params if scenario and not launch.functions else {}
    chosen = {name: value for name, value in settings.chosen.items() if name in known}
    return launch, replace(settings, chosen=chosen)
