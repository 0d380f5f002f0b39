"""What a page shows of a run that its report has no place for: the source and the command, from the
run file.
"""

from __future__ import annotations

from pathlib import Path

from gpulab.catalog.todays import with_todays_text
from gpulab.core.events import RunStarted
from gpulab.core.jobs import RunRequest
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.report.report import RunReport


def request_of(report: RunReport) -> tuple[RunRequest | None, str]:
    """Return the request of a run, where its run file can be read, or why it cannot."""
    if not report.run_file:
        return None, "nothing of it was kept in a run file"
    path = Path(report.run_file)
    try:
        events = with_todays_text(path, read_run_file(path).events)
    except OSError as error:
        return None, f"{path.name}: {error.strerror or error}"
    except RunFileError as error:
        return None, str(error)
    return next((e.request for e in events if isinstance(e, RunStarted)), None), ""
