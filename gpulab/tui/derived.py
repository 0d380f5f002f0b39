"""Runs that the lab derives from the scenario under the cursor: fixes are tried, parts delayed."""

from __future__ import annotations

from dataclasses import replace

from gpulab.catalog.catalog import Entry
from gpulab.core.jobs import RunRequest
from gpulab.features.what_if.view import NOTHING_TO_DELAY
from gpulab.report.sentences import with_reason
from gpulab.session.derived import Fixes, what_if_request
from gpulab.session.launch import Launch
from gpulab.session.settings import Settings, UsageError


def request_of(entry: Entry, settings: Settings, what: str) -> RunRequest | str:
    """The request of "fixes" or of "what-if", or why there is none. It takes seconds."""
    launch = Launch(entry, (entry.function,) if entry.function else ())
    scenario = entry.scenario
    known = scenario.params if scenario and not launch.functions else {}
    chosen = {name: value for name, value in settings.chosen.items() if name in known}
    settings = replace(settings, chosen=chosen)
    try:
        if what == "fixes":
            fixes = Fixes(launch, settings)
            return fixes.request if fixes.applying else "no fix that can be applied fits this step"
        return what_if_request(launch, settings)[0] or NOTHING_TO_DELAY
    except UsageError as error:
        return with_reason(str(error), error.reason)
