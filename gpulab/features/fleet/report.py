"""What `--fleet` reports, and writes as JSON (schema gpulab.fleet/1)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.findings import Finding
from gpulab.core.statuses import Conclusion, ExitCode
from gpulab.scenario import Param

SCHEMA = "gpulab.fleet/1"


class Resource(StrEnum):
    """What limits a figure: OTHER is latency, the host, or unknown."""

    MEMORY = "memory"
    COMPUTE = "compute"
    """Arithmetic and caches, which follow the clock of the SMs."""
    LINK = "link"
    OTHER = "other"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One variant of a scenario, or one ceiling, on all GPUs of a model: median and median absolute
    deviation over GPUs of its speed, steps/s or the unit of the ceiling.
    """

    model: str
    scenario: str
    params: dict[str, Param] = {}
    name: str
    resource: Resource
    unit: str
    gpus: int
    median: float
    mad: float


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Speed over the median of the fleet: below 1 is slower. The interval is None where a run has
    too few processes for one.
    """

    ratio: float
    low: float | None = None
    high: float | None = None
    figures: int
    """The median of so many figures."""
    limit: float
    """What the ratio must be below to be an outlier."""


class GpuReport(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: `uuid` is its device's name where it has none. `spread`: 80 % of its times lie in a
    range of this share of their median; `relative_spread`: that over the fleet's.
    """

    host: str
    uuid: str
    model: str
    files: list[str]
    ratios: dict[Resource, Ratio] = {}
    spread: float | None = None
    relative_spread: float | None = None
    sm_mhz: float | None = None
    outlier: bool = False
    slowest: Resource | None = None
    """Which ratio made it an outlier; None where its spread did, or that it has no measurement."""
    cause: Finding | None = None


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not in the comparison, and why."""

    file: str
    reason: str


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a folder of run files, the slowest first."""

    schema: str = SCHEMA
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    reason: Finding | None = None
    folder: str = ""
    files: int = 0
    hosts: int = 0
    figures: list[Figure] = []
    gpus: list[GpuReport] = []
    skipped: list[SkippedFile] = []

    @property
    def outliers(self) -> list[GpuReport]:
        return [gpu for gpu in self.gpus if gpu.outlier]
