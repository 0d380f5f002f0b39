"""The complete report of a run: every number, finding and check that any face shows, live or final.

`--json` writes these structs as they are (schema gpulab.result/2; before a first release fields may
still be renamed, afterwards only added). Unknown is None, never NaN. Times are seconds per step,
sizes bytes, `at` is in UTC, ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import msgspec

from gpulab.core.estimate import Estimate
from gpulab.core.events import Reported, Samples, VariantFailed
from gpulab.core.findings import Finding
from gpulab.core.machine import Device
from gpulab.core.run_file import Lines, RunFileError, event_batches
from gpulab.core.statuses import (
    Cache,
    Clock,
    Conclusion,
    ExitCode,
    IntervalUnit,
    Per,
    Relation,
    Shows,
    Stage,
    Status,
    StopReason,
)
from gpulab.report.findings import stopped_after_measuring
from gpulab.report.parts import Parted
from gpulab.scenario import Param
from gpulab.stats.comparison import Comparison
from gpulab.stats.statistics import CONFIDENCE
from gpulab.stats.verdicts import FLOOR

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Display(Protocol):
    """Shows a report where Python shows one."""

    def text(self, report: RunReport) -> str: ...
    def one_line(self, report: RunReport) -> str: ...
    def html(self, report: RunReport) -> str: ...
    def rendered(self, report: RunReport, form: str) -> str: ...
    def figure(self, reports: Sequence[RunReport], path: str | PathLike[str] | None) -> Figure: ...


_display: Callable[[], Display] | None = None


def display_with(display: Callable[[], Display]) -> None:
    """Let reports be shown by what `display` returns: it stands above them, and is imported when
    one is shown.
    """
    global _display
    _display = display


def _shown() -> Display:
    if _display is None:
        raise RuntimeError("nothing shows reports here: import gpulab.run, or gpulab.load, first")
    return _display()


def fields_of(source: object | None, *names: str) -> dict[str, Any]:
    """These fields of a struct, for another one: those that it has, and of None none."""
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


class VariantReport(Parted, msgspec.Struct, frozen=True, kw_only=True):
    name: str
    status: Status
    reason: Finding | None = None
    summary: str = ""
    claim: str | None = None
    unchecked: Finding | None = None
    """Why its output was not compared with the baseline's; None where it was."""
    items: float | None = None
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    time_s: Estimate | None = None
    clocks_s: dict[str, float] = {}
    """Median seconds per step by each clock that was used."""
    items_per_s: float | None = None
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    """Both derived from declared work and the median time."""
    steps_per_block: int | None = None
    contention: float | None = None
    """Share of the timed wall time in which the measuring thread did not run; of one thread on a
    CPU.
    """
    faults_per_block: float | None = None
    switches_per_block: float | None = None
    sm_mhz: float | None = None
    """Mean clock of the SMs just before each block, by the device clock's spin."""
    build_s: float | None = None
    first_step_s: float | None = None
    warm_up_s: float | None = None
    """What its first steps took longer than those that it settled at, after the very first."""
    drifting: bool | None = None
    error: float | None = None
    tolerance: float | None = None
    """The relative error that was allowed."""
    operations: int | None = None
    """Operations that the host starts in a step, as torch counts them; views are none."""
    operand_bytes: int | None = None
    """Bytes of the tensors that these read and write, each as often as it is one of theirs."""
    flops_counted: int | None = None
    """Of products, convolutions and attention, by torch's own formulas; None where some operation
    has none.
    """
    stage: Stage | None = None
    line: int | None = None

    @property
    def time_per_item(self) -> Estimate | None:
        """Seconds per item; of a step that declares none, per step."""
        return self.time_s.over(self.items or 1.0) if self.time_s else None

    def time_per(self, per: Per) -> Estimate | None:
        """Seconds per step or per item."""
        match per:
            case Per.STEP:
                return self.time_s
            case Per.ITEM:
                return self.time_per_item
            case _:
                assert_never(per)


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """The method of a measurement. `unit` is what the interval is over; `processes` how many
    measured, one after the other.
    """

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
    """Familywise error rate: an upper bound of the chance that any of their intervals misses."""
    empty_block_s: float | None = None
    stopped: StopReason | None = None


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Fixes one by one and all at once: the product of the individual speedups, and the speedup of
    all of them.
    """

    product: float
    speedup: Estimate
    relation: Relation


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """The output of the scenario: its first lines, how many were left out, and the last lines."""

    head: list[str] = []
    skipped: int = 0
    tail: list[str] = []


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a run. Epochs and processes are counted from 1; `remaining_s`: about so long
    to its end.
    """

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


class RunReport(Parted, msgspec.Struct, frozen=True, kw_only=True):
    """The report of a run. As a text it is its table; a notebook shows that with bars."""

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
    item: str = "item"
    """What an item of the work is, in the singular."""
    shows: Shows = Shows.SPEEDUP
    exercise: str = ""
    """Which one it is an answer to."""
    fail_below: float | None = None
    """What every comparison had to reach: by the command line, or by the scenario itself."""
    fail_below_of: dict[str, float] = {}
    """What those of some variants had to reach, in its place."""
    device: Device | None = None
    environment: dict[str, str | None] = {}
    method: Method = Method()
    control: Comparison | None = None
    """The baseline against its own second build: it must come out the same."""
    claim: str = ""
    run_file: str = ""
    outcome: Conclusion = Conclusion.MEASURED
    exit_code: ExitCode | None = ExitCode.MEASURED
    """None while the run is under way, as is `reason`."""
    reason: Finding | None = None
    findings: list[Finding] = []
    """What weakens the result."""
    explanations: list[Finding] = []
    """What explains the result, and weakens nothing."""
    variants: list[VariantReport] = []
    comparisons: list[Comparison] = []
    best: str | None = None
    """The variant shown to beat every other that is compared with the baseline; None without
    one.
    """
    best_among: list[str] = []
    """The variant with the largest speedup, and those statistically tied with it."""
    no_effect_reason: str = ""
    together: Together | None = None
    startup_s: dict[str, float] = {}
    """Of its first process, until the first variant is built: interpreter, imports (torch), device,
    file.
    """
    figures: list[Reported] = []
    failures: list[VariantFailed] = []
    log: LogReport = LogReport()
    progress: Progress = Progress()

    @property
    def baseline(self) -> str | None:
        return self.variants[0].name if self.variants else None

    @property
    def compares(self) -> bool:
        """Return whether it is made to compare variants; not where first steps, or clocks, are the
        lesson.
        """
        return self.shows in (Shows.SPEEDUP, Shows.MEMORY)

    @property
    def has_speedups(self) -> bool:
        """Return whether its table has speedups: functions, smoke runs, one variant have none."""
        return len(self.variants) > 1 and not self.functions and not self.smoke

    @property
    def is_whole(self) -> bool:
        """Return whether its measurement is complete: medians of a part do not count."""
        if self.exit_code != ExitCode.INTERRUPTED:
            return True
        return self.reason is not None and self.reason.code == stopped_after_measuring.code

    @property
    def under_way(self) -> bool:
        return self.outcome == Conclusion.UNDER_WAY

    @property
    def on_gpu(self) -> bool:
        return self.device is not None and self.device.on_gpu

    @property
    def timed(self) -> list[tuple[VariantReport, Estimate]]:
        """The variants that have a time, per step or per item."""
        times = [(variant, variant.time_per(self.per)) for variant in self.variants]
        return [(variant, time) for variant, time in times if time]

    @property
    def first_comparisons(self) -> list[Comparison]:
        """Each variant with what it is measured against."""
        first: dict[str, Comparison] = {}
        for comparison in self.comparisons:
            first.setdefault(comparison.variant, comparison)
        return list(first.values())

    def variant(self, name: str) -> VariantReport:
        """KeyError where there is none of that name."""
        for variant in self.variants:
            if variant.name == name:
                return variant
        names = ", ".join(variant.name for variant in self.variants) or "none"
        raise KeyError(f"no variant {name!r}; the variants: {names}")

    def comparison(self, name: str) -> Comparison | None:
        """The first comparison of a variant: with what it is measured against. None where it is
        compared with nothing, as the baseline; KeyError where there is no such variant.
        """
        for comparison in self.comparisons:
            if comparison.variant == name:
                return comparison
        self.variant(name)
        return None

    def preliminary_speedup(self, comparison: Comparison) -> float | None:
        """By the times of the first processes; None where one of the two has none."""
        own = self.variant(comparison.variant).time_per_item
        other = self.variant(comparison.against).time_per_item
        if own is None or other is None or not own.value:
            return None
        return other.value / own.value

    def samples(self, variant: str) -> list[float]:
        """The raw times of a variant, from the run file, in the order in which they were measured.

        Steps are timed in blocks: each value is of one block, its time over its steps, in seconds
        per step (`VariantReport.steps_per_block` says how many they were). All blocks of all
        processes are there, also those that the intervals leave out because something else
        disturbed them; warm-up is not. KeyError where there is no such variant, RunFileError where
        the run file is gone.
        """
        self.variant(variant)
        path = Path(self.run_file)
        times_s: list[float] = []
        try:
            for event in chain.from_iterable(event_batches(path, Lines(path))):
                if isinstance(event, Samples) and variant in event.names:
                    index = event.names.index(variant)
                    blocks = zip(event.variant, event.times_s, strict=True)
                    times_s += [time_s for block, time_s in blocks if block == index]
        except OSError as error:
            raise RunFileError(f"{self.run_file}: {error.strerror}") from None
        return times_s

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """The figure of `--plot`: the roofline, and the times with their intervals.

        `path`, which ends in .png, .svg or .pdf: it is written there as well. ValueError of another
        ending, ModuleNotFoundError without matplotlib. `gpulab.plot` draws several runs.
        """
        return _shown().figure([self], path)

    def render(self, form: str) -> str:
        """The run as a file of that form: "html", a page that opens anywhere; "md", Markdown for a
        pull request; or "text".

        What the report has no place for, such as the source, comes from the run file, and is
        missing where that is gone. ValueError of another form.
        """
        return _shown().rendered(self, form)

    def __str__(self) -> str:
        return _shown().text(self) if _display else msgspec.Struct.__repr__(self)

    def __repr__(self) -> str:
        return _shown().one_line(self) if _display else msgspec.Struct.__repr__(self)

    def _repr_html_(self) -> str:
        return _shown().html(self)
