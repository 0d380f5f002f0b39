"""Runs of earlier sessions, as the list shows them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime

from gpulab.catalog.catalog import Entry
from gpulab.report.past_run import PastRun
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import state_folder
from gpulab.views.listing import Mark, age, mark


def newest_marks(entries: Iterable[Entry]) -> dict[str, tuple[Mark, str]]:
    """By the name of an entry what its newest run came to, and how long ago that was."""
    newest = {(run.path, run.scenario): run for run in HistoryIndex(state_folder()).runs()}
    both = ((entry.name, newest.get((str(entry.path), entry.name))) for entry in entries)
    return {name: (mark(run), _ago(run)) for name, run in both if run is not None}


def _ago(run: PastRun) -> str:
    with suppress(ValueError):
        at = datetime.fromisoformat(run.at)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return age((datetime.now(UTC) - at).total_seconds())
    return ""
