"""The runs of the screen: at most one under way, and the last one of each scenario."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpulab.catalog.catalog import Entry
from gpulab.protocol.finding import Finding
from gpulab.session.settings import Settings
from gpulab.session.source import Source

Starter = Callable[[Entry, Settings], Source | Finding]
"""Starts a run and gives its source, or the reason why it cannot run here. UsageError."""


def start(entry: Entry, settings: Settings) -> Source | Finding:
    """A live run of an entry, with those of the chosen parameters that it has."""
    from gpulab.protocol.jobs import RunRequest
    from gpulab.session import launch
    from gpulab.session.run_files import default_path

    scenario = entry.scenario
    chosen = {name: value for name, value in settings.chosen.items() if scenario and name in scenario.params}
    of_entry = launch.entry_launch(entry)
    request = launch.plan(of_entry, replace(settings, chosen=chosen))
    if isinstance(request, RunRequest):
        return launch.start(request, default_path(of_entry.label))
    assert request.reason is not None
    return request.reason
