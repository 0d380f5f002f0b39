"""Whether somebody has tried an exercise on this machine: only then there is a solution to compare with."""

from __future__ import annotations

from hashlib import sha256

from gpulab.catalog.exercises import handed_out
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import state_folder


def has_attempt(exercise: str) -> bool:
    """Whether a run judged an answer to it other than the file as it is handed out. NoExerciseError."""
    untouched = sha256(handed_out(exercise).encode()).hexdigest()
    return any(
        run.exercise == exercise and run.source_sha256 != untouched
        for part in HistoryIndex(state_folder()).parts()
        for run in part.runs
    )
