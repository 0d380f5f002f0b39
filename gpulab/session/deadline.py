"""When a run has taken too long: absolutely where the user says so, else by what it has shown of
its own pace.

Before anything is calibrated nobody knows how long a build or a step takes, so only silence ends a
run. Once the engine has planned, its own estimate does too, with room for a machine that is busier
than it was. The estimate leaves out what is checked and observed beside the rounds: on an H100 the
processes of five variants with steps of 0.2 to 0.8 s took 24 s each where 3 s were planned. So the
pace of the processes counts where it is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from gpulab.core.events import (
    Built,
    Calibrated,
    Event,
    FindingMade,
    Log,
    Planned,
    ProcessStarted,
    Reported,
    StageStarted,
    Stopped,
)
from gpulab.core.failures import no_progress, overdue, timeout
from gpulab.core.findings import Finding
from gpulab.core.statuses import Stage
from gpulab.features.telemetry.events import (
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
)

_NO_PROGRESS = (
    Log,
    FindingMade,
    Reported,
    Telemetry,
    TelemetryEnded,
    TelemetryLost,
    TelemetryStarted,
)
"""What comes while a step hangs, too."""


class Deadline:
    """Watches one run. `at` is None where nothing ends it, on the clock of the events."""

    def __init__(self, timeout_s: float | None, now: Callable[[], float] = monotonic) -> None:
        self._now, self._timeout_s, self._ended = now, timeout_s, False
        self._started = self._heard = now()
        self._step_s = 0.0
        self._planned: Planned | None = None
        self._planned_at = 0.0
        self._processes_ended = 0
        self._process_at = 0.0
        """When the process under way began, or was planned."""
        self._stage = Stage.START
        self._variant: str | None = None

    @property
    def at(self) -> float | None:
        if self._ended:
            return None
        if self._timeout_s is not None:
            return self._started + self._timeout_s
        return min(self._heard + self._silence_s, self._overdue_at or float("inf"))

    def on_event(self, event: Event) -> None:
        """Take an event in, as soon as it came."""
        if isinstance(event, _NO_PROGRESS):
            return
        self._heard = self._now()
        match event:
            case StageStarted():
                self._stage, self._variant = event.stage, event.variant
            case Built():
                self._step_s = max(self._step_s, event.first_step_s)
            case Calibrated():
                self._step_s = max(self._step_s, event.step_s)
            case Planned():
                self._planned = event
                self._planned_at = self._heard
                self._process_at = self._heard
                self._processes_ended = 0
            case ProcessStarted():
                self._process_at = self._heard
                self._processes_ended += 1
            case Stopped():
                self._planned = None  # solo runs and checks are not in it

    def worker_started(self) -> None:
        """Another process begins, of which nothing was planned."""
        self._heard, self._planned = self._now(), None

    def passed(self) -> Finding | None:
        """Why the run is to be stopped, once."""
        at = self.at
        if at is None or self._now() < at:
            return None
        self._ended = True
        if self._timeout_s is not None:
            return timeout(timeout_s=self._timeout_s)
        expected_s = self._expected_s
        if expected_s is not None and at == self._overdue_at:
            return overdue(expected_s=expected_s, taken_s=self._now() - self._planned_at)
        place = " ".join(part for part in (self._stage.value, self._variant) if part)
        return no_progress(silence_s=self._silence_s, during=place)

    @property
    def _silence_s(self) -> float:
        # a check takes several steps, a profile more, and none of them is an event
        return max(600.0, 30 * self._step_s)

    @property
    def _overdue_at(self) -> float | None:
        expected_s = self._expected_s
        if expected_s is None:
            return None
        return self._planned_at + 4.0 * expected_s + 300.0

    @property
    def _expected_s(self) -> float | None:
        """As planned, or by the pace of the processes since then, if that is longer."""
        planned = self._planned
        if planned is None or planned.expected_s is None:
            return None
        if not planned.processes or not self._processes_ended:
            return planned.expected_s
        pace_s = (self._process_at - self._planned_at) / self._processes_ended
        return max(planned.expected_s, planned.processes * pace_s)
