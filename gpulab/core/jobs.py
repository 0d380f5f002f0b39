"""What is asked of a run, and the jobs that its workers are given: measure, time functions,
calibrate.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gpulab.core.findings import Finding
from gpulab.core.limits import TELEMETRY_ON
from gpulab.core.payloads import LINKS, Choice
from gpulab.core.statuses import Cache, CeilingChoice, Clock, Per, Shows
from gpulab.core.values import (
    Amount,
    Count,
    Fraction,
    Integer,
    Line,
    Name,
    ParamValue,
    PositiveAmount,
    Seconds,
    Source,
    Text,
)

CANCEL, CEILINGS_KNOWN = b"c", b"k"
"""What a session may tell the supervisor of a worker: to stop it, and that the device's ceilings
are known.
"""


class PartKind(StrEnum):
    """The kind of mark that a part of a step has."""

    PHASE = "phase"
    LOADING = "loading"
    """What a DataLoader does for a batch, in the step's thread or in a worker process."""
    FORWARD = "forward"
    BACKWARD = "backward"
    OPTIMIZER = "optimizer"
    COPIES = "copies"
    """Between the host and a GPU."""
    HOST = "host"
    """The thread that launches, at the end of each step."""
    OPERATION = "operation"


class Delay(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a step that is hooked, and made longer where `seconds` (of one pass) is above 0.

    `others`: every other thread and process is delayed instead, whenever the part has run.
    `busy`: it computes meanwhile; else it sleeps.
    """

    kind: PartKind
    name: Name
    seconds: Seconds = 0.0
    others: bool = False
    busy: bool = True

    @property
    def key(self) -> tuple[PartKind, str]:
        return self.kind, self.name


class StepPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a step as one process saw it: `passes` and `seconds` of a step. `why_not`: why it
    cannot be delayed.
    """

    kind: PartKind
    name: Name
    passes: Amount = 0.0
    seconds: Seconds = 0.0
    running: Fraction | None = None
    """The share of it in which its thread ran; None on a GPU."""
    lane: Name = ""
    """Where it runs: the step's thread, another one, worker processes."""
    why_not: Line = ""


class VariantInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A variant as the catalog read it; `missing` says which need the machine does not meet."""

    name: Name
    summary: Line = ""
    against: Name | None = None
    claim: Line | None = None
    unchecked: Line | None = None
    missing: Finding | None = None
    function: Name | None = None
    """The variant of the file that builds it; None: the one of its name."""
    params: dict[Name, ParamValue] = {}
    """What differs from the parameters of the run: several points of a sweep may be variants of one
    run.
    """
    delays: tuple[Delay, ...] | None = None
    """The parts that are hooked, where it is a step of another variant with one of them delayed;
    empty: that step without hooks.
    """

    @property
    def is_point(self) -> bool:
        """Return whether it is one of several points of a sweep, whose outputs differ."""
        return self.function is not None and self.delays is None


class Subject(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """A file, and what of it runs. `scenario` is the id that lists and run files show."""

    multi_line = ("source", "judge")
    scenario: Text
    path: Text
    source_sha256: Name
    variants: tuple[VariantInfo, ...]
    title: Text = ""
    source: Source = ""
    """What was read, and what runs, whatever the file holds by then: its UTF-8 has the SHA-256
    `source_sha256`. Empty where it was not kept.
    """
    hides: Finding | None = None
    """Which other file of its name it kept from being found."""


class TriedFix(msgspec.Struct, frozen=True, kw_only=True):
    """A fix that a scenario tries, or why it does not."""

    name: Name
    sentence: Line
    why_not: Line = ""


class ScenarioFile(Subject, frozen=True, kw_only=True, tag="scenario"):
    """The variants of the file's Scenario, with the parameters of this run."""

    topic: Line = ""
    claim: Line = ""
    no_effect_reason: Line = ""
    """Why an effect may not exist on a device: shown beside the verdict *same*."""
    item: Name = "item"
    """What an item of the work is, in the singular."""
    params: dict[Name, ParamValue] = {}
    env: dict[Name, Text | None] = {}
    fixes: tuple[TriedFix, ...] = ()
    """What its variants try of a program's step, where --try wrote it."""
    parts: tuple[StepPart, ...] = ()
    """Of the step whose parts its variants delay, where --what-if asked for them."""
    delay_s: Seconds = 0.0
    """Of one step, in each of them."""
    lesson: Source = ""
    """As it is told today, of a recording that ships; else it is the docstring of the file."""
    exercise: Name = ""
    judge: Source = ""
    """Of the answer to an exercise, which `source` is: the scenario that judges it."""


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """A function that makes the arguments of plain functions: a tuple, a dict of keywords, or one
    value.
    """

    multi_line = ("source",)
    function: Name
    path: Text
    source_sha256: Name
    source: Source = ""
    """Empty where it is in the file of the functions themselves."""


class FunctionFile(Subject, frozen=True, kw_only=True, tag="functions"):
    """Plain functions of the file: no Scenario, no parameters, nothing to compare them with."""

    arguments: Arguments | None = None


class Program(Subject, frozen=True, kw_only=True, tag="program"):
    """A program as it was started; its one variant has its name. `path` is its script, or what is
    executed. `argv` and `folder` are for readers: what is executed is not made of them.
    """

    argv: tuple[Text, ...] = ()
    folder: Text = ""


class Job(msgspec.Struct, frozen=True, kw_only=True, tag_field="job"):
    """The part of every job that is about the device and the worker's process."""

    device: Name = "cpu"
    threads: Count = 1
    seed: Integer | None = None
    """None: fresh entropy in every process, which the events record."""


class ProfileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """That a run ends with a profile, and what that keeps."""

    trace: Text | None = None
    """The file for a trace; of several variants each has its name in its own."""
    memory: Text | None = None
    """A path without suffix for memory snapshots of a GPU."""
    every: bool = True
    """Whether all variants have one: else the baseline, the fastest and `also`."""
    also: tuple[Name, ...] = ()
    """Variants of which a question of the course wants what a profile or a solo run shows."""
    utilization: bool = False
    """Whether a question wants the driver's utilization, which it averages over a second."""
    at_once: bool = False
    """Of a followed program: without waiting until it makes the loop no more than 3 % longer."""


class CountersOptions(msgspec.Struct, frozen=True, kw_only=True):
    """That ncu counts the kernels of variants after a run."""

    variant: Name = ""
    """The one beside the baseline; empty: every one."""
    report: Text = ""
    """A path without suffix for ncu's report."""


class Required(msgspec.Struct, frozen=True, kw_only=True):
    """Speedups that comparisons must reach: those of variants that are named, and every other one;
    None demands nothing.
    """

    every: PositiveAmount | None = None
    variants: dict[Name, PositiveAmount] = {}

    def __bool__(self) -> bool:
        return self.every is not None or bool(self.variants)

    def of(self, variant: str) -> float | None:
        """Return the speedup that a comparison of this variant must reach."""
        return self.variants.get(variant, self.every)


class TimedJob(Job, frozen=True, kw_only=True):
    """The common part of all jobs that time variants. `time_s` is for rounds: builds and checks
    come on top.
    """

    time_s: Seconds = 10.0
    clock: Clock = Clock.WALL
    cache: Cache = Cache.HOT
    roof: Name | None = None
    per: Per = Per.STEP
    ladder: bool = False
    exclusive: bool = False
    increasing_memory: bool = False
    """Each variant needs more memory than the one above: the first that does not fit is reported,
    and no failure.
    """
    ranks: Count = 0
    """Processes that run each variant together; 0: the one that measures, without a group."""
    shows: Shows = Shows.SPEEDUP
    smoke: bool = False
    quick: bool = False
    """A short run: fewer epochs and wider intervals, marked in every result."""
    brief: bool = False
    """Whether it may end as soon as each comparison is decided: nobody asked for a time or a
    width.
    """
    width: Fraction | None = None
    """The relative half-width of an interval that counts as narrow; None: the lab's own."""
    required_speedup: PositiveAmount | None = None
    """What every comparison must reach: the run may end as soon as each is known to, or one is
    known not to.
    """
    required_speedups: dict[Name, PositiveAmount] = {}
    """What the comparisons of some variants must reach, in its place."""
    from_start: bool = False
    """Whether it matters what the first process takes to start: then no other starts beside it."""
    solo_runs: bool = True
    """Whether a variant runs for some seconds by itself at the end, where telemetry reads a GPU
    meanwhile.
    """
    alone: bool = False
    """Whether variants are also timed one by one, before a process has built the others."""
    gpu_beside_cpu: bool = False
    """Whether telemetry reads a GPU, by name, although the run may be on a CPU."""
    ceilings: CeilingChoice = CeilingChoice.NONE
    """A GPU's are kept, and a CPU's for an hour."""
    profile: ProfileOptions | None = None
    """In processes of their own after everything was measured: the profiler slows what follows it.
    """
    counters: CountersOptions | None = None
    choices: tuple[Choice, ...] = ()
    """What earlier runs of this source chose with `gpulab.tune`."""
    retune: bool = False
    """Whether to choose anew all the same."""
    folder: Text | None = None
    """For files that nobody keeps: the session makes it, and removes it; so does the worker's
    supervisor.
    """

    @property
    def required(self) -> Required:
        return Required(every=self.required_speedup, variants=self.required_speedups)

    @property
    def starts_matter(self) -> bool:
        """Return whether what a process takes to start is part of the result: then no other starts
        beside it.
        """
        return self.from_start or self.shows == Shows.CURVE

    @property
    def declares_bytes_of_link(self) -> bool:
        """Return whether the bytes that a step declares are those over a link: that of the roof, or
        where none is named what joins its ranks.
        """
        return self.roof in LINKS or (self.roof is None and self.ranks > 1)


class Measure(TimedJob, frozen=True, kw_only=True, tag="measure"):
    """Compare the variants of a scenario."""

    subject: ScenarioFile
    fail_below: PositiveAmount | None = None
    """What the scenario itself says that every comparison must reach."""
    cases: tuple[Name | dict[Name, ParamValue], ...] = ()
    """What inputs may also be: names of cases, or parameters of other builds."""


class TimeFunctions(TimedJob, frozen=True, kw_only=True, tag="time functions"):
    """Time plain functions: nothing is checked and nothing compared."""

    subject: FunctionFile


class Calibrate(Job, frozen=True, kw_only=True, tag="calibrate"):
    """Measure every ceiling of the device; of several ranks what joins them, and nothing else."""

    ranks: Count = 0


class Follow(Job, frozen=True, kw_only=True, tag="follow"):
    """Start a program as it is, and follow its steps from within: no worker is given this job."""

    subject: Program
    profile: ProfileOptions | None = None
    """None: its steps are timed, and none is recorded."""
    what_if: Line | None = None
    """Functions whose delay is measured beside the parts of a step; None: nothing is delayed."""
    tried: Line | None = None
    """Fixes to try in its steps; empty: all of them; None: none."""
    nsys: Text | None = None
    """The report that Nsight Systems writes, under which it runs; None: it runs by itself."""


class Look(Job, frozen=True, kw_only=True, tag="look"):
    """Have `look` of a module answer a request about one step of a user's code."""

    module: Text
    request: msgspec.Raw


AnyJob = Measure | TimeFunctions | Calibrate
WorkerJob = AnyJob | Look


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One run: its first job, and what the session does around it."""

    job: Measure | TimeFunctions | Calibrate | Follow
    telemetry: Line = TELEMETRY_ON
    """on, off, or the index or UUID of the GPU to sample, whatever the run is on."""
    timeout_s: Seconds | None = None
    profile: ProfileOptions | None = None
    counters_s: Seconds | None = None
    """From one sample of the GPU's counters to the next, after the measurement; None: none."""


def subject_of(job: WorkerJob | Follow) -> ScenarioFile | FunctionFile | Program | None:
    """The file or the program of a job; None for a calibration or a look, which have none."""
    return None if isinstance(job, (Calibrate, Look)) else job.subject


def path_of(job: AnyJob) -> str:
    """The file of a job's subject; empty where it has none."""
    subject = subject_of(job)
    return subject.path if subject else ""


class StepRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request to look at a step of a program, in a process of its own."""

    file: str
    function: str
    arguments: str | None = None
    device: str = "cpu"
    threads: int = 1
