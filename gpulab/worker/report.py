"""What the run tells the session of itself: where it is, and what went wrong."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from gpulab.model.events import (
    LOST_DEVICE,
    Checked,
    OutOfMemory,
    StageStarted,
    VariantFailed,
    VariantRefused,
    VariantSkipped,
)
from gpulab.model.plain import plain
from gpulab.model.request import RunRequest
from gpulab.worker.build import RefusedError
from gpulab.worker.channel import Channel
from gpulab.worker.check import WrongOutputError
from gpulab.worker.failure import failure
from gpulab.worker.lab import SkippedError
from gpulab.worker.warden import Where


class Report:
    """Turns stages and errors into events."""

    def __init__(self, channel: Channel, request: RunRequest, where: Where) -> None:
        self._channel, self._request, self._where = channel, request, where
        self.wait: Callable[[], None] | None = None
        """What waits for the device, once there is one."""
        self.too_large: str | None = None
        """The variant that did not fit, where the scenario grows."""

    def at(self, stage: str, variant: str | None = None) -> None:
        self._where.at(stage, variant)
        self._channel.emit(StageStarted(stage=stage, variant=variant))

    def failed(self, variant: str | None, stage: str, error: BaseException) -> None:
        """Tell what an error says of a variant; ends the process where the device is in error for good."""
        if isinstance(error, RefusedError) and variant is not None:
            self._channel.emit(VariantRefused(variant=variant, reason=str(error)))
        elif isinstance(error, WrongOutputError) and variant is not None:
            when = "after" if stage == "re-check" else "before"
            self._channel.emit(Checked(variant=variant, when=when, ok=False, error=error.error, reason=str(error)))
        elif isinstance(error, SkippedError) and variant is not None:
            self._channel.emit(VariantSkipped(variant=variant, reason=plain(str(error))))
        else:
            self._failure(failure(error, self._request.path, variant, stage))
        self.device_must_live(stage)

    def _failure(self, found: VariantFailed) -> None:
        grows = self._request.grows and found.variant not in (None, self._request.variants[0].name)
        if grows and found.kind == "out of memory":
            self.too_large = found.variant
            self._channel.emit(OutOfMemory(variant=found.variant or "", stage=found.stage, message=found.message))
        else:
            self._channel.emit(found)

    def device_must_live(self, stage: str) -> None:
        """A CUDA error sticks to its process: nothing measured after it can be believed."""
        if self.wait is None:
            return
        try:
            self.wait()
        except Exception as error:
            found = failure(error, self._request.path, None, stage)
            message = f"the device is in error, and so is every later measurement of this process: {found.message}"
            self._channel.emit(msgspec.structs.replace(found, kind="device", message=message))
            self._channel.flush()
            os._exit(LOST_DEVICE)
