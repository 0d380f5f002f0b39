"""What one worker said of itself: its last words, its supervisor's, and whether every event of it arrived."""

from __future__ import annotations

from dataclasses import dataclass

from gpulab.protocol.events import AnyEvent, WorkerDone, WorkerExited
from gpulab.protocol.finding import Finding, finding


@dataclass
class WorkerTranscript:
    """`malformed` counts lines of the event pipe that are no events, `events` those that are, up to the last word."""

    exited: WorkerExited | None = None
    done: WorkerDone | None = None
    events: int = 0
    malformed: int = 0

    def add(self, event: AnyEvent | None) -> None:
        """`event` is None where its type is not known: it counts as well."""
        if isinstance(event, WorkerExited):
            self.exited = event
        if isinstance(event, WorkerDone):
            self.done = event
        elif self.done is None:
            self.events += 1

    @property
    def complete(self) -> bool:
        """Whether the worker did its whole job, and every event of it arrived."""
        return self.done is not None and self.done.sent == self.events

    @property
    def findings(self) -> list[Finding]:
        """What the reader of the result must know of how it went."""
        findings = []
        if self.exited and self.exited.orphans:
            findings.append(finding("processes_left_running", count=self.exited.orphans))
        if self.malformed > (self.done is None):  # a worker that was killed may leave half a line
            findings.append(finding("malformed_event_lines", count=self.malformed))
        return findings
