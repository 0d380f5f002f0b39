"""Earlier runs beside a new one: looked up before it measures, and the run itself is kept for the
next.
"""

from __future__ import annotations

import socket

from gpulab.core.events import EarlierRuns, PastSpeedups, WorkerReady
from gpulab.core.jobs import Measure, RunRequest, subject_of
from gpulab.features.history.report import PastRun, has_contenders, key_of, past_run
from gpulab.report.report import RunReport
from gpulab.report.state import RunState
from gpulab.session.history_index import HistoryIndex
from gpulab.session.run_files import state_folder

_MOST_RUNS = 50
"""The newest: older ones say less of the machine as it is."""


class History:
    """Of one run: reads what may matter when it is made, and answers once the run has its
    device.
    """

    def __init__(self, request: RunRequest) -> None:
        job = request.job
        self._job = (
            job
            if isinstance(job, Measure) and not (job.smoke or job.quick or has_contenders(job))
            else None
        )
        self._subject = subject_of(job)
        self._runs: list[PastRun] = []

    def read(self) -> None:
        """Before the worker starts, whose first steps are timed: where the index is missing, a part
        is made again.
        """
        if self._subject is not None:
            runs = HistoryIndex(state_folder()).runs(self._subject.source_sha256)
            self._runs = [run for run in runs if run.counts]

    def see(self, event: object) -> EarlierRuns | None:
        """What earlier runs gave, as soon as the event says what this one runs on; None where there
        are none.
        """
        if not isinstance(event, WorkerReady) or self._job is None or not self._runs:
            return None
        subject, host = self._job.subject, socket.gethostname()
        key = key_of(subject.source_sha256, subject.params, host, event.device, event.environment)
        speedups: dict[tuple[str, str], list[float]] = {}
        for run in [run for run in self._runs if run.key == key][-_MOST_RUNS:]:
            for comparison in run.comparisons:
                if comparison.speedup is not None:
                    speedups.setdefault((comparison.variant, comparison.against), []).append(
                        comparison.speedup
                    )
        comparisons = tuple(
            PastSpeedups(variant=variant, against=against, speedups=values)
            for (variant, against), values in speedups.items()
        )
        return EarlierRuns(comparisons=comparisons) if comparisons else None


def keep(state: RunState, report: RunReport) -> None:
    """Enter a run that has ended into the index."""
    if (run := past_run(state, report)) is not None:
        HistoryIndex(state_folder()).add(run)
