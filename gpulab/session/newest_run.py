"""The newest run of a scenario on this machine, whole."""

from __future__ import annotations

from pathlib import Path

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
