"""A worker's reports to the session: where it is, and what went wrong, as events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from gpulab.core.events import (
    DEVICE_LOST,
    Checked,
    Event,
    Examined,
    FindingMade,
    OutOfMemory,
    StageStarted,
    Unchecked,
    VariantFailed,
    VariantRefused,
    VariantSkipped,
)
from gpulab.core.failures import device_in_error
from gpulab.core.findings import Finding
from gpulab.core.jobs import AnyJob, Measure, path_of
from gpulab.core.statuses import FailureKind, Stage
from gpulab.engine.processes.channel import Channel, WorkerPosition
from gpulab.engine.processes.failure import (
    RefusedError,
    SkippedError,
    UncheckedError,
    VariantError,
    WrongOutputError,
    failure,
)


class Reporter:
    """Turns stages, errors and findings into events."""

    def __init__(self, channel: Channel, job: AnyJob, position: WorkerPosition) -> None:
        self.channel = channel
        self._job = job
        self.position = position
        self._path = path_of(job)
        self.wait: Callable[[], None] | None = None
        """Waits for the device; None on a CPU, and before it is open."""
        self.too_large: str | None = None
        """The variant that did not fit, where each needs more memory than the one above."""

    def stage(self, stage: Stage, variant: str | None = None, *, detail: str | None = None) -> None:
        self.position.move(stage, variant)
        self.channel.emit(StageStarted(stage=stage, variant=variant, detail=detail))

    def found(self, finding: Finding, *, explains: bool = False) -> None:
        """Something that weakens the result, or explains it and weakens nothing."""
        self.channel.emit(FindingMade(finding=finding, explains=explains))

    def failed(self, variant: str | None, stage: Stage, error: BaseException) -> None:
        """Report what an error means for a variant. Ends the process if the device has one."""
        if variant is not None and isinstance(error, VariantError):
            self.channel.emit(*_events_of(variant, stage, error))
        else:
            self._failed(failure(error, self._path, variant, stage))
        self.require_device(stage)

    def require_device(self, stage: Stage) -> None:
        """A CUDA error sticks to its process: nothing measured after it can be believed."""
        if self.wait is None:
            return
        try:
            self.wait()
        except Exception as error:
            event = failure(error, self._path, None, stage)
            cause = device_in_error(message=str(event.cause.values["message"]))
            self.channel.emit(replace(event, kind=FailureKind.DEVICE, cause=cause))
            self.channel.flush()
            os._exit(DEVICE_LOST)

    def _failed(self, event: VariantFailed) -> None:
        job = self._job
        variant = event.variant
        may_not_fit = (
            isinstance(job, Measure)
            and job.increasing_memory
            and variant != job.subject.variants[0].name
        )
        if may_not_fit and variant is not None and event.kind == FailureKind.OUT_OF_MEMORY:
            self.too_large = variant
            self.channel.emit(OutOfMemory(variant=variant, stage=event.stage, cause=event.cause))
        else:
            self.channel.emit(event)


def _events_of(variant: str, stage: Stage, error: VariantError) -> Iterator[Event]:
    """Yield what an error says of a variant; and which check it was, if it was one."""
    reason = error.finding
    if isinstance(error, RefusedError):
        yield VariantRefused(variant=variant, reason=reason)
    elif isinstance(error, SkippedError):
        yield VariantSkipped(variant=variant, reason=reason)
    elif isinstance(error, UncheckedError):
        yield Unchecked(variant=variant, reason=reason)
        if error.check is not None:
            yield Examined(variant=variant, check=error.check, skipped=reason)
        return
    elif isinstance(error, WrongOutputError):
        yield Checked(variant=variant, ok=False, error=error.error, reason=reason)
    if error.check is not None:
        wrong = isinstance(error, WrongOutputError)
        yield Examined(variant=variant, check=error.check, ok=False, wrong=wrong, reason=reason)
