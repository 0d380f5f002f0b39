"""What the telemetry process says: whom it samples, its readings, and when it can no more."""

from __future__ import annotations

from gpulab.model.event import Event


class TelemetryStarted(Event, frozen=True):
    """What is sampled: a GPU by its name and UUID, or none and `why`. `limits` end the scales of its own fields."""

    gpu: str | None = None
    uuid: str | None = None
    driver: str | None = None
    why: str | None = None
    unsupported: dict[str, str] = {}
    limits: dict[str, float] = {}
    health: dict[str, float] = {}
    problems: list[str] = []


class Telemetry(Event, frozen=True):
    """One reading of everything that was due, of the time `since` the one before.

    `reasons` are clock-event bits, also of what happened in between; `others` foreign processes on the GPU
    since `others_since`, where they were looked at; `unsupported` is the whole of it where it has changed.
    """

    since: float
    values: dict[str, float]
    reasons: int | None = None
    others: list[str] | None = None
    others_since: float | None = None
    unsupported: dict[str, str] = {}
    problems: list[str] = []
    """Errors of the device that the driver reported since the last reading."""


class TelemetryLost(Event, frozen=True):
    """The GPU is gone: what was read of it stays."""

    reason: str


class TelemetrySwitched(Event, frozen=True):
    """The sampler pauses or goes on."""

    on: bool
