"""What a page shows of a run that its report has no place for: the source and the command,
from the run file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpulab.catalog.todays import with_todays_text
from gpulab.core.events import Event, RunStarted
from gpulab.core.jobs import RunRequest
from gpulab.core.run_file import RunFileError, read_run_file
from gpulab.features.live.panel import LiveRun, live_run
from gpulab.features.live.report import LiveDetail
from gpulab.report.build import fold_all
from gpulab.report.report import RunReport


@dataclass(frozen=True)
class Record:
    """`live` is what panels are drawn from; `problem` says why there is no more than the report."""

    live: LiveRun
    events: Sequence[Event] = field(default_factory=list)
    problem: str = ""

    @property
    def report(self) -> RunReport:
        return self.live.report

    @property
    def request(self) -> RunRequest | None:
        return next((e.request for e in self.events if isinstance(e, RunStarted)), None)


def record_of(report: RunReport) -> Record:
    """With what its run file has, where that can be read."""
    nothing = LiveRun(report, LiveDetail())
    if not report.run_file:
        return Record(nothing, problem="nothing of it was kept in a run file")
    try:
        path = Path(report.run_file)
        events = with_todays_text(path, read_run_file(path).events)
    except OSError as error:
        return Record(nothing, problem=f"{Path(report.run_file).name}: {error.strerror or error}")
    except RunFileError as error:
        return Record(nothing, problem=str(error))
    try:
        return Record(live_run(report, fold_all(events)), events)
    except Exception:  # events that make no sense together, as the report says
        return Record(nothing, events)
