"""What is sampled of a GPU and of the host, and by whom; and what its clock-event reasons mean."""

from __future__ import annotations

import msgspec

from gpulab.core.events import Event
from gpulab.core.findings import Finding
from gpulab.core.values import Count, Line, Moment, Name, Number


class SamplingTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to sample: a process with all below it, and a GPU by index or UUID. `worker_gpu` is the
    one that the worker runs on.
    """

    worker: Count
    gpu: str | None = None
    worker_gpu: str | None = None


class TelemetryStarted(Event, frozen=True):
    """The start of sampling: a GPU by its name and UUID, or none and the reason. `limits` end the
    scales of its fields.

    `unsupported` maps a field to the code of the reason why it will never have a value.
    """

    gpu: Line | None = None
    uuid: Line | None = None
    driver: Line | None = None
    no_gpu_reason: Finding | None = None
    unsupported: dict[Name, Name] = {}
    limits: dict[Name, Number] = {}
    health: dict[Name, Number] = {}
    problems: list[Finding] = []


class Telemetry(Event, frozen=True):
    """One reading of everything that was due, of the time `since` the one before.

    `reasons` are clock-event bits, also of what happened in between; `others` are foreign processes
    on the GPU since `others_since`, where they were looked for; `unsupported` is the whole of it
    where it has changed.
    """

    since: Moment
    values: dict[Name, Number]
    reasons: Count | None = None
    others: list[Line] | None = None
    others_since: Moment | None = None
    unsupported: dict[Name, Name] = {}
    problems: list[Finding] = []
    """Errors of the device that the driver reported since the last reading."""


class TelemetryLost(Event, frozen=True):
    """The GPU, or the telemetry process, is gone: what was read stays."""

    reason: Finding


class TelemetryEnded(Event, frozen=True):
    """The sampler was stopped because its part of the run is over: nothing more will come, and
    nothing is wrong.
    """


POWER_CAP = 0x4
SLOWED = 0x8 | 0x20 | 0x40 | 0x80
"""No result survives: hardware slowdown, thermal slowdowns, power brake."""
HELD_BACK = SLOWED | POWER_CAP | 0x10
"""Reasons worth showing: those above, the power cap, and sync boost."""
CLOCK_REASONS = {
    0x4: ("P", "power cap"),
    0x8: ("H", "hardware slowdown"),
    0x20: ("T", "thermal slowdown"),
    0x40: ("T", "thermal slowdown by the hardware"),
    0x80: ("B", "power brake"),
    0x10: ("S", "sync boost"),
    0x2: ("A", "application clocks"),
    0x1: ("-", "idle"),
}
"""The driver's clock-event reasons by bit: a letter for narrow places, and the name."""
CLOCK_LETTERS = {letter: name for letter, name in reversed(CLOCK_REASONS.values())}
"""What each letter means; of two reasons with one letter the first."""


def reason_names(reasons: int) -> list[str]:
    """The names of the bits that are set."""
    return list(dict.fromkeys(name for bit, (_, name) in CLOCK_REASONS.items() if reasons & bit))


def reason_letters(reasons: int | None) -> str:
    """A letter for each reason that throttles the clocks; ok for none, n/a if unknown."""
    if reasons is None:
        return "n/a"
    held = (letter for bit, (letter, _) in CLOCK_REASONS.items() if reasons & bit & HELD_BACK)
    return "".join(dict.fromkeys(held)) or "ok"
