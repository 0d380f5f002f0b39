"""Runs of earlier sessions: what the list shows of them, and their files read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.catalog.catalog import Entry
from gpulab.catalog.view import OutcomeMark, mark
from gpulab.features.history.view import ago
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import at_home, state_folder

if TYPE_CHECKING:
    from gpulab.features.history.report import PastRun
    from gpulab.report.report import RunReport


def newest_marks(entries: Iterable[Entry]) -> dict[str, tuple[OutcomeMark, str]]:
    """By the name of an entry what its newest run came to, and how long ago that was."""
    now = datetime.now(UTC)
    newest = {
        (run.path, run.scenario): run for run in HistoryIndex(state_folder()).newest_of_each()
    }
    both = ((entry.name, newest.get((str(entry.path), entry.name))) for entry in entries)
    return {name: (mark(run), ago(run, now)) for name, run in both if run is not None}


@dataclass(frozen=True)
class Opened:
    """A run file as it is read now."""

    report: RunReport
    source: str
    """What ran; empty in files from before it was kept."""


def read_run(run: PastRun) -> Opened | str:
    """The run of the past as its file tells it; or the problem where it cannot be read."""
    from gpulab.core.jobs import subject_of
    from gpulab.core.run_file import RunFileError, read_run_file
    from gpulab.report.build import build_report, fold_all

    try:
        state = fold_all(read_run_file(Path(run.run_file)).events)
    except RunFileError as error:
        return str(error)
    except OSError as error:
        return f"{error.strerror or error}: {at_home(Path(run.run_file))}"
    subject = subject_of(state.request.job) if state.request else None
    return Opened(build_report(state, run.run_file), subject.source if subject else "")
