"""Runs of this machine, looked up: the newest of a scenario, and whether somebody has tried an exercise."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from gpulab.catalog.exercises import handed_out
from gpulab.protocol.run_file import RunFileError
from gpulab.report.exit_codes import Conclusion
from gpulab.report.report import RunReport
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run import Run
from gpulab.session.run_files import state_folder
from gpulab.session.source import File

_TOLD = (Conclusion.MEASURED, Conclusion.SLOWER, Conclusion.INCONCLUSIVE)


def newest_report(scenario: str) -> RunReport | None:
    """Of its newest run that measured something at full size; None where there is none, or its file is gone."""
    for part in HistoryIndex(state_folder()).parts():
        for past in part.runs:
            if past.scenario == scenario and past.outcome in _TOLD and not past.smoke:
                try:
                    run = Run(File(Path(past.run_file)))
                    run.poll()
                except (OSError, RunFileError):
                    continue
                return run.report
    return None


def has_attempt(exercise: str) -> bool:
    """Whether a run judged an answer to it other than the file as it is handed out. NoExerciseError."""
    untouched = sha256(handed_out(exercise).encode()).hexdigest()
    return any(
        run.exercise == exercise and run.source_sha256 != untouched
        for part in HistoryIndex(state_folder()).parts()
        for run in part.runs
    )
