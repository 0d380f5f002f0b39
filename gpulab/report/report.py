"""The complete report of a run: every number, finding and check that any face shows, live or final.

`--json` writes these structs as they are (schema gpulab.result/1; before a first release fields may still be renamed,
afterwards only added). Unknown is None, never NaN. Times are seconds per step, sizes bytes, `at` is in UTC, ISO 8601.
"""

from __future__ import annotations

import msgspec

from gpulab.analysis.comparison import FLOOR, Comparison
from gpulab.analysis.statistics import CONFIDENCE
from gpulab.protocol.ceiling import Ceiling
from gpulab.protocol.device import Device
from gpulab.protocol.finding import Finding
from gpulab.protocol.statuses import (
    Cache,
    Clock,
    FailureKind,
    IntervalUnit,
    Per,
    Relation,
    Shows,
    Stage,
    StopReason,
    Verdict,
)
from gpulab.report.exit_codes import Conclusion, ExitCode
from gpulab.report.goodput.from_start import FromStart
from gpulab.report.variant_report import CurveReport as CurveReport
from gpulab.report.variant_report import MemoryReport as MemoryReport
from gpulab.report.variant_report import SoloReport as SoloReport
from gpulab.report.variant_report import Time as Time
from gpulab.report.variant_report import VariantReport as VariantReport
from gpulab.scenario import Param


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How it was measured. `unit` is what the interval is over; `processes` how many measured, one after the other."""

    clock: Clock = Clock.WALL
    cache: Cache = Cache.HOT
    epochs: int = 0
    rounds: int = 0
    processes: int = 0
    confidence: float = CONFIDENCE
    floor: float = FLOOR
    unit: IntervalUnit = IntervalUnit.EPOCH_MEDIANS
    comparisons: int = 0
    """How many have an interval."""
    familywise: float = 0.0
    """The chance, at most, that any of their intervals misses."""
    empty_block_s: float | None = None
    stopped: StopReason | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True):
    """The baseline against its own second build: it must come out the same."""

    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict = Verdict.INCONCLUSIVE


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """What a variant reported by `lab.report(name, value)`."""

    variant: str | None
    name: str
    value: float | None


class CeilingsReport(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the device, measured `at` a time (UTC), perhaps in an earlier run, with what its datasheet says."""

    at: str | None = None
    cached: bool = False
    ceilings: list[Ceiling] = []


class TelemetryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was sampled: a GPU, or the reason why none; `unsupported` gives a code for each field without a value.

    `last`, `recent` and `peaks` are by field; `recent` has the newest readings, the oldest first. `age_s` is how long
    ago the last reading was, None once sampling has ended.
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
    recent: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    clocks: str = "n/a"
    """Letters of what holds the clocks back in the last reading, as in a solo run."""
    slowed: bool = False
    """Whether any reading showed a slowdown."""
    age_s: float | None = None
    stale: bool = False


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Fixes one by one and all at once: the product of the individual speedups, and the speedup of all of them."""

    product: float
    speedup: float
    low: float | None = None
    high: float | None = None
    relation: Relation


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure of a variant, or of the whole run."""

    variant: str | None
    kind: FailureKind
    stage: Stage
    cause: Finding
    line: int | None = None
    traceback: str = ""


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenario printed: the first lines, how many were left out, and the last lines."""

    head: list[str] = []
    skipped: int = 0
    tail: list[str] = []


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is. Epochs and processes are counted from 1; `remaining_s`: about so long to its end."""

    stage: Stage = Stage.START
    variant: str | None = None
    detail: str | None = None
    epoch: int = 0
    planned_epochs: int | None = None
    process: int = 0
    planned_processes: int | None = None
    remaining_s: float | None = None
    verdict_stands: bool = False
    rounds: int = 0
    elapsed_s: float = 0.0
    awaiting_telemetry: bool = False
    """Telemetry is on, and the driver has not answered yet."""


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    title: str = ""
    source_sha256: str = ""
    at: str = ""
    params: dict[str, Param] = {}
    seed: int | None = None
    """As given; None: fresh entropy in every process."""
    smoke: bool = False
    quick: bool = False
    functions: bool = False
    """Plain functions were timed: nothing is compared."""
    per: Per = Per.STEP
    shows: Shows = Shows.SPEEDUP
    exercise: str = ""
    """Which one it is an answer to."""
    fail_below: float | None = None
    """What every comparison had to reach: by the command line, or by the scenario itself."""
    device: Device | None = None
    environment: dict[str, str | None] = {}
    method: Method = Method()
    control: Control | None = None
    claim: str = ""
    run_file: str = ""
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode | None = ExitCode.MEASURED
    """None while the run is under way: it came to nothing yet, and has no `reason` either."""
    reason: Finding | None = None
    findings: list[Finding] = []
    """What weakens the result."""
    explanations: list[Finding] = []
    """What explains the result, and weakens nothing."""
    variants: list[VariantReport] = []
    comparisons: list[Comparison] = []
    best: str | None = None
    """The variant that is shown to beat each of the others that are compared with the baseline; None where none is."""
    best_among: list[str] = []
    """Those among which the best is: the largest speedup, and what cannot be told apart from it."""
    no_effect_reason: str = ""
    together: Together | None = None
    sweet_spot: str | None = None
    telemetry: TelemetryReport | None = None
    ceilings: CeilingsReport | None = None
    startup_s: dict[str, float] = {}
    """Of its first process, until the first variant is built: interpreter, imports (torch), device, file."""
    from_start: FromStart | None = None
    """Of a command that asks for it."""
    figures: list[Figure] = []
    failures: list[Failure] = []
    log: LogReport = LogReport()
    progress: Progress = Progress()

    @property
    def baseline(self) -> str | None:
        return self.variants[0].name if self.variants else None

    @property
    def compares(self) -> bool:
        """Whether it is made to compare variants; not where first steps, or clocks, are the lesson."""
        return self.shows in (Shows.SPEEDUP, Shows.MEMORY)

    @property
    def under_way(self) -> bool:
        return self.outcome == Conclusion.UNDER_WAY

    @property
    def on_gpu(self) -> bool:
        return self.device is not None and self.device.on_gpu

    def variant(self, name: str) -> VariantReport:
        """KeyError where there is none of that name."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        raise KeyError(name)

    def comparison(self, name: str) -> Comparison | None:
        """The first comparison of a variant: with what it is measured against."""
        return next((comparison for comparison in self.comparisons if comparison.variant == name), None)
