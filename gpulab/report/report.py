"""The complete report of a run: every number, finding and check that any face shows, live or final.

`--json` writes these structs as they are (schema gpulab.result/1; before a first release fields may
still be renamed, afterwards only added). Unknown is None, never NaN. Times are seconds per step,
sizes bytes, `at` is in UTC, ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import msgspec

from gpulab.core.events import CeilingsMeasured, MemoryUsed, Reported, Samples, VariantFailed
from gpulab.core.findings import Finding
from gpulab.core.machine import Device
from gpulab.core.payloads import KernelCode, LineTime, Operation, Tuning, WindowFacts
from gpulab.core.run_file import Lines, RunFileError, event_batches
from gpulab.core.statuses import (
    Cache,
    Clock,
    Conclusion,
    ExitCode,
    IntervalUnit,
    LateCause,
    Per,
    Relation,
    Shows,
    Stage,
    Status,
    StepMark,
    StopReason,
)
from gpulab.features.findings.advice import Advice, NotJudged
from gpulab.features.fixes.result import FixReport
from gpulab.features.kernels.differences import KernelDifference
from gpulab.features.roofline.bound import Cause, OperationPoint, Point
from gpulab.features.what_if.result import WhatIfReport
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


class StepSource(StrEnum):
    """What measured the step that a goodput is a share of."""

    ROUNDS = "rounds"
    PROFILER = "profiler"
    """Of the profiler's process, without it: with warm caches, and its device as it was while it
    recorded.
    """


class GoodputReport(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a step goes, as it runs without the profiler. Shares of the step; seconds
    per step.

    `phases` are the shares of the phases in windows of their own, the live figure: on a GPU an
    upper bound, since gaps between launches count. `goodput` is `seconds["useful"]` over `step_s`,
    `partition` the share of each part. `efficiency` is ideal time by the roofline over useful time,
    `product` ideal time over all of it; `hidden` is the share of the time of a device's copies in
    which better work ran beside them. `items_per_s` is of an output that was checked.
    """

    phases: dict[str, float] = {}
    running: dict[str, float] = {}
    """Of each phase, the share in which the thread ran; on a CPU."""
    waiting: list[str] = []
    """Phases in which the thread hardly ran: they wait, or were preempted."""
    goodput: float | None = None
    partition: dict[str, float] = {}
    repeated: dict[str, float] = {}
    """The same shares by the second recording; empty without one."""
    seconds: dict[str, float] = {}
    """Of each part: they sum to the step."""
    step_s: float | None = None
    step_source: StepSource | None = None
    marked: bool = False
    """Whether the step says what is useful; where it does not, everything that torch computes
    counts.
    """
    efficiency: float | None = None
    product: float | None = None
    hidden: float | None = None
    items_per_s: float | None = None
    overhead: float | None = None
    """What the profiler adds to a step, relative."""
    uncertainty: float | None = None
    """The largest difference between the goodput and what another way gives: another recording,
    another time of the step, another place for what the profiler adds.
    """
    reliable: bool | None = None
    """Whether the goodput is certain within 5 points: the device is in the recording, both
    recordings hold the same operations, and what they add up to fits into the step.
    """
    accurate: bool | None = None
    """Reliable, and hardly slowed by the profiler: there are no `reasons`, and the idle parts are
    as recorded.
    """
    reasons: list[Finding] = []
    operations: list[Operation] = []
    """Calls and seconds of one step."""
    facts: WindowFacts | None = None
    """What else the recording says of a step."""
    lines: list[LineTime] = []
    """Where the main thread of a CPU ran outside of torch's operations, or waited; by samples."""
    steps: int | None = None
    """How many of them the window had."""
    peak_bytes: int | None = None
    trace: str | None = None


class JobGoodput(msgspec.Struct, frozen=True, kw_only=True):
    """A job of one variant: so many steps, and the seconds of everything from process start to the
    last of them.

    `seconds` are by cause: the parts of the start, build, what the first step and the warm-up take
    longer than steady steps, then the parts of all steps; they sum to `total_s`. Without a profile
    the steps are one part, and `goodput`, useful seconds over all of them, is None. `speedup` is
    against the baseline's job; the job is ahead of it from `ahead_after` steps of the baseline on,
    None where it never is.
    """

    variant: str
    steps: int
    seconds: dict[str, float]
    total_s: float
    goodput: float | None = None
    reliable: bool | None = None
    speedup: float | None = None
    ahead_after: int | None = None


class FromStart(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of all variants that were measured, for the same items: `steps` steps of the
    baseline.
    """

    steps: int
    start_known: bool
    """Whether interpreter, imports, device and file were timed."""
    jobs: list[JobGoodput] = []


class Time(msgspec.Struct, frozen=True, kw_only=True):
    """Low and high are None where there were too few epochs for an interval."""

    median: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval, low and high; the median where there is none."""
        if self.low is None or self.high is None:
            return self.median, self.median
        return self.low, self.high

    def over(self, count: float) -> Time:
        """The time of one of `count` parts."""
        if self.low is None or self.high is None:
            return Time(median=self.median / count)
        return Time(median=self.median / count, low=self.low / count, high=self.high / count)


class SoloReport(msgspec.Struct, frozen=True, kw_only=True):
    """A variant alone: seconds, readings, median time per step, joules per item, and the means of
    what was read.
    """

    seconds: float
    readings: int
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    """The ends of the interval of `time_s`; None where it had too few blocks for one."""
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


class CurveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The first steps of a variant in fresh processes, each step's time over them, in seconds.

    After `settled_after` steps the next ones take at most 1.1 times a settled one; None: they do
    not settle. `excess_s` is what those before cost beyond settled ones. `build_s` came before
    them.
    """

    processes: int
    build_s: Time
    steps: list[Time]
    settled_s: Time
    settled_after: int | None
    excess_s: Time


class FollowedReport(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a program that was followed: its steps, and the median of their windows."""

    pid: int
    rank: int | None = None
    """By its variable RANK; None where it has none."""
    python: str = ""
    torch: str | None = None
    mark: StepMark | None = None
    """What ends its steps; None where it had none."""
    steps: int = 0
    step_s: float | None = None


class JobRank(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a program of several. All seconds are per step; waiting for others is in none.

    `late_s`: how much later than the median of the others it comes, where that is most; `last` is
    the share of those collectives to which it comes last. `loader_s` to `gc_s` are what its main
    thread did, `other_s` the rest of its own time, `run_s` its CPU time and `delay_s` how long it
    waited for a CPU; None where the system does not say.
    """

    rank: int
    host: str
    late_s: float
    last: float
    loader_s: float
    forward_s: float
    backward_s: float
    optimizer_s: float
    gc_s: float
    other_s: float
    run_s: float | None = None
    delay_s: float | None = None
    clock: float | None = None
    """Of its GPU, over the highest; None without one."""
    slowed: float | None = None
    """The share of readings in which heat or hardware slowed its clock."""


class JobCollective(msgspec.Struct, frozen=True, kw_only=True):
    """A collective of each step: `line` calls it, empty where torch does by itself; it is the
    `nth` of its kind in the step, from 1. `wait_s` is from the median rank's coming to the last
    one's, `transfer_s` from there until the first rank went on, None where nobody saw that; both
    per step.
    """

    group: str
    name: str
    sizes: list[list[int]]
    line: str
    nth: int
    steps: int
    wait_s: float
    transfer_s: float | None
    last_rank: int
    """That came last most often."""


class LateRank(msgspec.Struct, frozen=True, kw_only=True):
    """The rank that the others wait for, by which share of a step, and why: `excess_s` are the
    seconds per step that the cause explains.
    """

    rank: int
    late_s: float
    share: float
    last: float
    """Of the collectives of its worst place, the share to which it came last."""
    cause: LateCause
    excess_s: float
    collective: int
    """Its worst place, in `collectives`."""


class MissingRank(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that others wait for, for `waiting_s` so far: it did not come to that collective, and
    stands there, the innermost line first; empty where it does not answer.
    """

    rank: int
    name: str
    sizes: list[list[int]]
    line: str
    waiting_s: float
    stack: list[str]


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """Who is late in a program of several ranks, by the arrival times of its collectives."""

    steps: int
    """That were compared."""
    step_s: float | None
    """The median of one."""
    ranks: list[JobRank] = []
    collectives: list[JobCollective] = []
    """Those with most waiting first."""
    late: LateRank | None = None
    slow: int | None = None
    """The collective, in `collectives`, whose transfer takes a large part of the step."""
    missing: MissingRank | None = None


class ProgramReport(msgspec.Struct, frozen=True, kw_only=True):
    """A program that was started as it is, and the steps of the process that counts: the lowest
    rank's, or else the one with most of them.

    Times of steps are of windows without the profiler. `loop_s` is the
    time of the steps but for the first, with what is between them; `following_s` is what following
    added to it: what the profiler added to the steps of its windows, which took `recorded_s`, and
    starting and exporting recordings.
    """

    argv: list[str]
    folder: str
    code: int | None = None
    """Its exit code; None where a signal ended it, or while it runs."""
    signal: int | None = None
    wall_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    resident_bytes: int | None = None
    """The largest resident set of one of its processes."""
    left: int = 0
    """Processes of it that went on."""
    mark: StepMark | None = None
    steps: int = 0
    """All of that process, the first and those under the profiler included."""
    first_step_s: float | None = None
    """From the start of the program to the end of the first step."""
    recorded_s: float = 0.0
    following_s: float = 0.0
    loop_s: float = 0.0
    peak_bytes: int | None = None
    """Of device memory that torch had allocated."""
    recent: list[float] = []
    """Seconds of a step in each of the newest plain windows, the oldest first."""
    processes: list[FollowedReport] = []
    ranks: JobReport | None = None
    """None of a program without collectives of several ranks."""


class RankReport(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a variant: the median seconds per step of its blocks, waiting for others
    included; of a GPU, the memory that it had at most, and the medians of its SM clock and power
    just after each block.
    """

    rank: int
    time_s: float
    memory_bytes: int | None = None
    sm_mhz: float | None = None
    power_w: float | None = None


class VariantReport(msgspec.Struct, frozen=True, kw_only=True):
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
    time_s: Time | None = None
    clocks: dict[str, float] = {}
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
    solo_run: SoloReport | None = None
    operations: int | None = None
    """Operations that the host starts in a step, as torch counts them; views are none."""
    operand_bytes: int | None = None
    """Bytes of the tensors that these read and write, each as often as it is one of theirs."""
    flops_counted: int | None = None
    """Of products, convolutions and attention, by torch's own formulas; None where some operation
    has none.
    """
    cause: Cause | None = None
    """What limits its step, declared or not; None where unknown."""
    roofline: Point | None = None
    goodput: GoodputReport | None = None
    operation_points: list[OperationPoint] = []
    """The operations of its profiled step for which there are a formula and a roof, those that take
    longest first.
    """
    memory: MemoryUsed | None = None
    ranks: list[RankReport] = []
    """Of a scenario with several."""
    first_steps: CurveReport | None = None
    kernels: list[KernelCode] = []
    """CUDA C++ of its own, as the compiler made it."""
    kernel_difference: KernelDifference | None = None
    """Its kernels against those of the variant that it is compared with."""
    tuning: Tuning | None = None
    """What `gpulab.tune` chose, and from which candidates."""
    tuning_cached: bool = False
    """Whether it was measured in an earlier run."""
    advice: list[Advice] = []
    """What makes it slow and what to do, what would gain most first."""
    not_judged: list[NotJudged] = []
    """Rules that lack a measurement."""
    stage: Stage | None = None
    line: int | None = None

    @property
    def time_per_item(self) -> Time | None:
        """Seconds per item; of a step that declares none, per step."""
        return self.time_s.over(self.items or 1.0) if self.time_s else None

    def time_per(self, per: Per) -> Time | None:
        """Seconds per step or per item."""
        match per:
            case Per.STEP:
                return self.time_s
            case Per.ITEM:
                return self.time_per_item
            case _:
                assert_never(per)


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """How it was measured. `unit` is what the interval is over; `processes` how many measured, one
    after the other.
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


class TelemetryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was sampled: a GPU, or the reason why none; `unsupported` gives a code for each field
    without a value.

    `last`, `recent` and `peaks` are by field; `recent` has the newest readings, the oldest first.
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
    recent: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    clocks: str = "n/a"
    """Letters of clock throttling in the last reading, as in a solo run."""
    slowed: bool = False
    """Whether any reading showed a slowdown."""
    age_s: float | None = None
    stale: bool = False


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Fixes one by one and all at once: the product of the individual speedups, and the speedup of
    all of them.
    """

    product: float
    speedup: float
    low: float | None = None
    high: float | None = None
    relation: Relation


class LogReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the scenario printed: the first lines, how many were left out, and the last lines."""

    head: list[str] = []
    skipped: int = 0
    tail: list[str] = []


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run is. Epochs and processes are counted from 1; `remaining_s`: about so long to its
    end.
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


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a run gave. As a text it is its table; a notebook shows that with bars."""

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
    fixes: list[FixReport] = []
    """What --try gave of each fix, with those that do not apply."""
    what_if: WhatIfReport | None = None
    """What each part of a step would gain, of --what-if."""
    best: str | None = None
    """The variant shown to beat every other that is compared with the baseline; None without
    one.
    """
    best_among: list[str] = []
    """The variant with the largest speedup, and those statistically tied with it."""
    no_effect_reason: str = ""
    together: Together | None = None
    sweet_spot: str | None = None
    telemetry: TelemetryReport | None = None
    ceilings: CeilingsMeasured | None = None
    """With what the run itself measured of roofs, and what its datasheet says."""
    startup_s: dict[str, float] = {}
    """Of its first process, until the first variant is built: interpreter, imports (torch), device,
    file.
    """
    from_start: FromStart | None = None
    """Of a command that asks for it."""
    program: ProgramReport | None = None
    """The program that was followed; None of every other run."""
    figures: list[Reported] = []
    failures: list[VariantFailed] = []
    log: LogReport = LogReport()
    progress: Progress = Progress()

    @property
    def baseline(self) -> str | None:
        return self.variants[0].name if self.variants else None

    @property
    def compares(self) -> bool:
        """Whether it is made to compare variants; not where first steps, or clocks, are the
        lesson.
        """
        return self.shows in (Shows.SPEEDUP, Shows.MEMORY)

    @property
    def has_speedups(self) -> bool:
        """Whether its table has any: functions, a smoke run and one variant alone have none."""
        return len(self.variants) > 1 and not self.functions and not self.smoke

    @property
    def under_way(self) -> bool:
        return self.outcome == Conclusion.UNDER_WAY

    @property
    def on_gpu(self) -> bool:
        return self.device is not None and self.device.on_gpu

    @property
    def timed(self) -> list[tuple[VariantReport, Time]]:
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
        if own is None or other is None or not own.median:
            return None
        return other.median / own.median

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
