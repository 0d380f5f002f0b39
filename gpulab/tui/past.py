"""Runs of earlier sessions, as the list shows them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from gpulab.catalog.catalog import Entry
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import state_folder
from gpulab.views.listing import Mark, mark
from gpulab.views.pages.history import ago


def newest_marks(entries: Iterable[Entry]) -> dict[str, tuple[Mark, str]]:
    """By the name of an entry what its newest run came to, and how long ago that was."""
    now = datetime.now(UTC)
    newest = {(run.path, run.scenario): run for run in HistoryIndex(state_folder()).runs()}
    both = ((entry.name, newest.get((str(entry.path), entry.name))) for entry in entries)
    return {name: (mark(run), ago(run, now)) for name, run in both if run is not None}
