"""What `--fleet` reports, and writes as JSON (schema gpulab.fleet/1)."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.statuses import Conclusion, ExitCode

SCHEMA = "gpulab.fleet/1"


class Resource(StrEnum):
    """The resource that limits a variant or a ceiling: OTHER is latency, the host, or unknown."""

    MEMORY = "memory"
    COMPUTE = "compute"
    """Arithmetic and caches, which follow the clock of the SMs."""
    LINK = "link"
    OTHER = "other"


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """Speed over the median of the fleet: below 1 is slower. The interval is None where a run has
    too few processes for one. Below `limit` it makes an outlier.
    """

    ratio: Estimate
    limit: float


class GpuReport(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU: `uuid` is its device's name where it has none."""

    host: str
    uuid: str
    model: str
    files: list[str]
    ratios: dict[Resource, Ratio] = {}
    outlier: bool = False
    slowest: Resource | None = None
    """Which ratio made it an outlier; None where its spread did, or that it has no measurement."""
    cause: Finding | None = None

    @property
    def lowest(self) -> Resource | None:
        return min(
            self.ratios, key=lambda resource: self.ratios[resource].ratio.value, default=None
        )


class SkippedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not in the comparison, and why."""

    file: str
    reason: str


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """All GPUs of a folder of run files, outliers first, then the slowest first."""

    schema: str = SCHEMA
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    reason: Finding | None = None
    folder: str = ""
    files: int = 0
    hosts: int = 0
    gpus: list[GpuReport] = []
    skipped: list[SkippedFile] = []

    @property
    def outliers(self) -> list[GpuReport]:
        return [gpu for gpu in self.gpus if gpu.outlier]
