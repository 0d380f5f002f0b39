"""What `--compare` reports: both sides of each scenario, what differs, and how fast B is beside A.

Saved runs fill it (`analysis.py`), and so does a command that measures both sides anew, in pairs.
`--json` writes these structs as they are (schema gpulab.comparison/2). Seconds, watts, shares; None
is unknown.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.findings import Finding
from gpulab.core.machine import Device
from gpulab.core.statuses import Conclusion, ExitCode, Verdict
from gpulab.features.compare.findings import variant_on_one_side
from gpulab.report.gates import Gate
from gpulab.scenario import Param

SCHEMA = "gpulab.comparison/2"


class Pairing(StrEnum):
    """The evidence of a row's ratio: A and B in turn, in the same seconds of the same device; the
    speedups of both over their own baselines, each paired within its run; or nothing but the times
    of separate runs.
    """

    PAIRED = "paired"
    WITHIN_RUNS = "paired within runs"
    UNPAIRED = "unpaired"


class DifferenceKind(StrEnum):
    """The kind of a difference: a changed environment makes it no comparison of the code alone."""

    ENVIRONMENT = "environment"
    """Device, versions, driver, power limit, clocks."""
    PARAMETERS = "parameters"
    SOURCE = "source"
    METHOD = "method"
    """How long and how it was measured, what came out."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One side of a scenario: `name` as it was given, and what it ran with. Of several runs these
    are those of the last.
    """

    name: str
    scenario: str = ""
    run_files: list[str] = []
    host: str = ""
    at: str = ""
    """When its last run started: UTC, ISO 8601."""
    outcome: Conclusion = Conclusion.MEASURED
    device: Device | None = None
    environment: dict[str, str | None] = {}
    power_limit_w: float | None = None
    sm_mhz: float | None = None
    """The mean clock of the SMs over the blocks of its baseline."""
    params: dict[str, Param] = {}
    source_sha256: str = ""
    smoke: bool = False
    quick: bool = False
    revision: str = ""
    """Of a side that was measured anew: the SHA of its commit, where it is one."""
    python: str = ""
    file: str = ""
    """What was run, relative to the folder of its project."""
    files: dict[str, str] = {}
    """Files of its project that were imported or read, with their SHA-256."""


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference between A and B, as text; None where a side lacks it."""

    what: str
    kind: DifferenceKind
    a: str | None
    b: str | None


class ChangedLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line of one side's source that the other does not have; lines count from 1."""

    file: str = ""
    """The path in the project, where it is another file than the step's own."""
    side: str
    """a or b."""
    line: int
    text: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One variant in A and in B.

    Where it is paired within runs, the values are its speedups over `against` in its own run, else
    its seconds per step, or per item. `ratio` is how many times as fast B is as A: above 1 it is
    faster, whatever the values are.
    """

    variant: str
    against: str | None = None
    a: Estimate | None = None
    b: Estimate | None = None
    ratio: Estimate | None = None
    mde: float | None = None
    """The minimum detectable effect."""
    pairing: Pairing = Pairing.UNPAIRED
    own_speedup: Estimate | None = None
    """Of B over `against`, within its own run: what a gate for a speedup is about."""
    verdict: Verdict = Verdict.INCONCLUSIVE
    reason: Finding | None = None

    @property
    def speedup(self) -> Estimate | None:
        """Return the ratio, by the name that comparisons of a run have for it."""
        return self.ratio

    @property
    def changed(self) -> bool:
        return self.verdict in (Verdict.FASTER, Verdict.SLOWER)


class ScenarioComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario on one device: `a` before, `b` after."""

    scenario: str
    title: str = ""
    a: Side
    b: Side
    differences: list[Difference] = []
    changed_lines: list[ChangedLine] = []
    """The first ones, in the order of the files; `changed_line_count` is of all."""
    changed_line_count: int = 0
    rows: list[Row] = []
    findings: list[Finding] = []

    @property
    def variants(self) -> list[str]:
        """Those of the rows, and those that one side alone has."""
        alone = [each.variant for each in self.findings if each.code == variant_on_one_side.code]
        return [*(row.variant for row in self.rows), *(name for name in alone if name)]

    @property
    def environment_changed(self) -> list[Difference]:
        """Return what else changed than the code."""
        return [each for each in self.differences if each.kind == DifferenceKind.ENVIRONMENT]


class ComparisonReport(msgspec.Struct, frozen=True, kw_only=True):
    """All scenarios of one command."""

    schema: str = SCHEMA
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode = ExitCode.MEASURED
    reason: Finding | None = None
    before: str
    after: str
    comparisons: list[ScenarioComparison] = []
    gates: list[Gate] = []
    """What was demanded of rows, and what came of it."""
    findings: list[Finding] = []
    """What is about no single one of them, such as a scenario that one side alone has."""
