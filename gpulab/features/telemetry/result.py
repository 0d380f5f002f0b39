"""What was sampled, and a variant alone: parts of the report."""

from __future__ import annotations

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding


class SoloReport(msgspec.Struct, frozen=True, kw_only=True):
    """A variant alone: seconds, readings, median time per step, joules per item, and the means of
    what was read.
    """

    seconds: float
    readings: int
    time_s: Estimate
    """Without an interval where it had too few blocks for one."""
    items_per_s: float | None = None
    energy_j: float | None = None
    means: dict[str, float] = {}
    clocks: str = "n/a"
    """Letters of clock throttling meanwhile: T thermal, H hardware, B power brake, P power cap; or
    ok.
    """
    slowed: float | None = None
    """Share of the readings that show a slowdown: T, H or B; None where clocks are not read."""
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    """Both derived from declared work."""


class TelemetryReport(msgspec.Struct, frozen=True, kw_only=True):
    """The telemetry of a run: a GPU, or the reason why none; `unsupported` gives a code for each
    field without a value.

    `last` and `peaks` are by field; the peak of energy is what was used since the first reading.
    `age_s` is how long ago the last reading was, None once sampling has ended.
    """

    gpu: str | None = None
    uuid: str | None = None
    no_gpu_reason: Finding | None = None
    lost: Finding | None = None
    readings: int = 0
    unsupported: dict[str, str] = {}
    limits: dict[str, float] = {}
    health: dict[str, float] = {}
    last: dict[str, float] = {}
    peaks: dict[str, float] = {}
    clocks: str = "n/a"
    """Letters of clock throttling in the last reading, as in a solo run."""
    slowed: bool = False
    """Whether any reading showed a slowdown."""
    age_s: float | None = None
    stale: bool = False


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about telemetry."""

    solo_run: SoloReport | None = None


class RunPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a run's report about telemetry."""

    telemetry: TelemetryReport | None = None
