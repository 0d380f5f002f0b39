"""What a page shows of a run that its report has no place for: the source and the command, from the
run file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpulab.catalog.todays import with_todays_text
from gpulab.core.events import RunStarted
from gpulab.core.jobs import RunRequest
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.report.report import RunReport


@dataclass(frozen=True)
class LoadedRun:
    """`problem` says why there is no more than the report."""

    report: RunReport
    request: RunRequest | None = None
    problem: str = ""


def load_run(report: RunReport) -> LoadedRun:
    """With what its run file has, where that can be read."""
    if not report.run_file:
        return LoadedRun(report, problem="nothing of it was kept in a run file")
    try:
        path = Path(report.run_file)
        events = with_todays_text(path, read_run_file(path).events)
    except OSError as error:
        return LoadedRun(report, problem=f"{Path(report.run_file).name}: {error.strerror or error}")
    except RunFileError as error:
        return LoadedRun(report, problem=str(error))
    return LoadedRun(report, next((e.request for e in events if isinstance(e, RunStarted)), None))
