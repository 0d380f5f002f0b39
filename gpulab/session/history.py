"""What earlier runs of the same file leave to a new one: their speedups, and what they chose with
`gpulab.tune`. And the run itself is kept for the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulab.core.events import Event, RunEnded, RunInvalid, Tuned, WorkerReady
from gpulab.core.findings import Finding
from gpulab.core.host import host_name
from gpulab.core.jobs import Measure, RunRequest, subject_of
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Outcome
from gpulab.features import present
from gpulab.report.past import PastRun, has_contenders, key_of, past_run
from gpulab.report.report import RunReport
from gpulab.report.state import RunState
from gpulab.session.store import Store

if TYPE_CHECKING:
    from gpulab.features.history.events import EarlierRuns

_CHOICES = "choices"
_MOST_RUNS = 50
"""The newest: older ones say less of the machine as it is."""


class History:
    """The earlier runs of one run's file: the store is read before the worker starts, whose first
    steps are timed, and written once the run has ended.
    """

    def __init__(self, request: RunRequest) -> None:
        self._job = request.job
        self._subject = subject_of(request.job)
        self._runs: list[PastRun] = []
        self.choices: tuple[Choice, ...] = ()
        """What earlier runs of the file chose."""
        self.made: list[Choice] = []
        """What this one chose."""
        self.findings: list[Finding] = []
        """Where the store could not be used."""

    def read(self) -> None:
        source = self._subject.source_sha256 if self._subject else ""
        with Store() as store:
            self.choices = tuple(store.kept(_CHOICES, source, Choice))
            if self._subject is not None:
                self._runs = [run for run in store.runs_of(source) if run.counts]
        if problem := store.problem():
            self.findings.append(problem)

    def on_event(self, event: Event) -> EarlierRuns | None:
        """Take an event in; what earlier runs gave, as soon as it is clear what this one runs on,
        None where there are none.
        """
        match event:
            case WorkerReady():
                return self._earlier_runs(event)
            case Tuned(cached=False):
                self.made.append(event.choice)
            case RunInvalid():
                self.made = []
            case RunEnded(outcome=outcome) if outcome != Outcome.FAILED:
                self._keep_choices()
        return None

    def _earlier_runs(self, ready: WorkerReady) -> EarlierRuns | None:
        job = self._job
        if not isinstance(job, Measure) or job.smoke or job.quick or has_contenders(job):
            return None
        subject = job.subject
        key = key_of(
            subject.source_sha256, subject.params, host_name(), ready.device, ready.environment
        )
        speedups: dict[tuple[str, str], list[float]] = {}
        for run in [run for run in self._runs if run.key == key][-_MOST_RUNS:]:
            for comparison in run.comparisons:
                if comparison.speedup is not None:
                    pair = comparison.variant, comparison.against
                    speedups.setdefault(pair, []).append(comparison.speedup.value)
        events = present("history.events")
        if events is None or not speedups:
            return None
        comparisons = tuple(
            events.PastSpeedups(variant=variant, against=against, speedups=values)
            for (variant, against), values in speedups.items()
        )
        earlier: EarlierRuns = events.EarlierRuns(comparisons=comparisons)
        return earlier

    def _keep_choices(self) -> None:
        if self.made and self._subject is not None:
            with Store() as store:
                for choice in self.made:
                    store.keep(_CHOICES, self._subject.source_sha256, choice.key, choice)


def keep(state: RunState, report: RunReport) -> None:
    """Enter a run that has ended into the store. ValidationError where it is out of range."""
    if (run := past_run(state, report)) is not None:
        with Store() as store:
            store.add_run(run)
