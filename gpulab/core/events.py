"""The one stream of events of a run: lines of JSON, one struct per line, tagged by `type`.

These are read by the core, or by several features; those of one feature are in its events.py.
Those that stand in a report as they are have all their fields there, and in their lines.
Names and numbers only: callables, tensors and exceptions never cross a process boundary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from time import monotonic

import msgspec

from gpulab.core.findings import Finding, Value
from gpulab.core.jobs import RunRequest
from gpulab.core.machine import Device
from gpulab.core.payloads import Choice
from gpulab.core.statuses import Clock, FailureKind, Outcome, Stage, StopReason
from gpulab.core.values import (
    Amount,
    Count,
    Index,
    Integer,
    Items,
    Line,
    Moment,
    Name,
    Number,
    PositiveCount,
    Seconds,
    SignalNumber,
    StepTime,
    Text,
)


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    """`t`: seconds on the monotonic clock that all processes of a machine share; `rank`: 0 for the
    only worker.
    """

    t: Moment = msgspec.field(default_factory=monotonic)
    rank: Count = 0


class VariantEvent(Event, frozen=True, kw_only=True):
    """An event about one variant."""

    variant: Name


class ProcessStarted(Event, frozen=True):
    """A process began to measure: its number, its entropy, and the first epoch that is built in it.

    `startup_s`: what it took until then, by part (interpreter, imports, device, file). Those after
    the first find what that one imported. `fork_server`: the first process that the same fork
    server has forked.
    """

    process: Index
    seed: Integer
    fork_server: Index = msgspec.field(default=0, name="conductor")
    epoch: Index = 0
    startup_s: dict[Name, Seconds] = {}


class Examined(Event, frozen=True):
    """A kind of check ran `count` times on a variant, since the last such event; `ok` is False
    where any failed.

    `check`: a CheckKind; in a file of before maybe one that is no more, which nobody asks for.
    `wrong`: a check that failed proves that the variant does not compute what it should; else it
    cannot be measured fairly. `values` are what it showed, the numbers of a sentence. `skipped`
    says why it could not run at all.
    """

    variant: Name | None
    check: Name
    ok: bool = True
    count: Count = 1
    wrong: bool = False
    values: dict[Name, Value] = {}
    reason: Finding | None = None
    skipped: Finding | None = None


class ProgramEnded(VariantEvent, frozen=True, kw_only=True):
    """The end of a program: by `code` or by `signal`, after `wall_s`. CPU time and the largest
    resident set are of it and of the processes that it waited for; `left` still run.
    """

    code: Count | None
    signal: SignalNumber | None
    wall_s: Seconds
    user_s: Seconds = 0.0
    system_s: Seconds = 0.0
    resident_bytes: Count = 0
    left: Count = 0


class Built(VariantEvent, frozen=True):
    """The first build of a variant in this process, and its very first step (both in seconds)."""

    build_s: Seconds
    first_step_s: Seconds
    items: Items
    bytes: Count | None = None
    flops: Count | None = None
    dtype: Name | None = None


class Counted(VariantEvent, frozen=True):
    """One untimed step: the operations that the host started, and the FLOPs that torch counts of
    them.

    `flops` is None where some operation has no formula.
    """

    operations: Count
    flops: Count | None
    operand_bytes: Count | None = None
    """Bytes of the tensors that its operations read and write, each counted as often as it is one
    of an operation's.
    """
    distinct_bytes: Count | None = None
    """Bytes of memory below all of them, each counted once."""
    fewer_flops: bool = False
    """Whether some operation may compute its result with fewer FLOPs than its formula has:
    convolutions.
    """


class Tuned(VariantEvent, frozen=True):
    """A choice of a variant by `gpulab.tune`; `cached`: in an earlier run."""

    choice: Choice
    cached: bool = False


class Checked(VariantEvent, frozen=True):
    """Outputs against the baseline's: `error` is the relative Frobenius error, None where nothing
    was compared.
    """

    ok: bool
    error: Amount | None = None
    tolerance: Amount | None = None
    reason: Finding | None = None


class Unchecked(VariantEvent, frozen=True):
    """The outputs of a variant could not be compared: there is nothing to compare, for this
    reason.
    """

    reason: Finding


class VariantRefused(VariantEvent, frozen=True):
    """The variant breaks the rules of a fair comparison (items, global settings): it is not
    measured.
    """

    reason: Finding


class VariantSkipped(VariantEvent, frozen=True):
    """Left out: the device cannot do it (`lab.skip`), or a smaller one did not fit."""

    reason: Finding


class OutOfMemory(VariantEvent, frozen=True):
    """A variant of a scenario with increasing memory does not fit. Others report it as
    `VariantFailed`.
    """

    stage: Stage
    cause: Finding


class Calibrated(VariantEvent, frozen=True):
    """Steps per block, and the time of an empty block of that clock (what a block costs beside its
    steps). Before each block the state is restored, and `lead_in` untimed steps come.
    """

    steps_per_block: PositiveCount
    step_s: StepTime
    empty_block_s: Seconds
    lead_in: Index | None = None


class WarmedUp(VariantEvent, frozen=True):
    """The warm-up's own samples (seconds per step), kept apart; `drift` is the last relative
    change.
    """

    times_s: list[StepTime]
    drift: Number
    drifting: bool
    steps: PositiveCount | None = None
    """Of each sample."""


class Planned(Event, frozen=True, kw_only=True):
    """The plan of the engine: `epochs` of so many rounds in each process, `processes` before width
    may stop it.

    `expected_s`: how long measuring takes from here, if nothing stops it early, by what the first
    builds and steps took.
    """

    rounds: Index
    epochs: Index
    processes: Index = 0
    """0: not spread over processes, and `epochs` are those of the whole run."""
    expected_s: Seconds | None = None


class Samples(Event, frozen=True):
    """Timed blocks in the order they ran: one entry per block in every column.

    `ended` is when a block was over, `steps` how many it timed. `times_s` and `cpu_s` are per step,
    `faults` (minor page faults) and `switches` (involuntary context switches) per block; `variant`
    indexes into `names`. Epochs below `complete` have all their rounds sent. ValueError where the
    columns do not fit together: a line that a scenario wrote, not the lab.
    """

    names: tuple[Name, ...]
    complete: Index
    epoch: list[Index]
    round: list[Index]
    variant: list[Index]
    times_s: list[StepTime]
    cpu_s: list[Seconds]
    faults: list[Count]
    switches: list[Count]
    ended: list[Moment]
    steps: list[PositiveCount]
    sm_mhz: list[Amount] = []
    """The clock of the SMs just before each block, where the device clock was used."""

    def __post_init__(self) -> None:
        columns: list[Sized] = [
            self.epoch,
            self.round,
            self.variant,
            self.times_s,
            self.cpu_s,
            self.faults,
            self.switches,
            self.ended,
            self.steps,
        ]
        if self.sm_mhz:
            columns.append(self.sm_mhz)
        if len(set(map(len, columns))) > 1 or max(self.variant, default=-1) >= len(self.names):
            raise ValueError("samples whose columns do not fit together")

    def blocks(self) -> Iterator[tuple[int, int, int, float, float, int]]:
        """(epoch, round, index of the variant, seconds per step, when it ended, steps) of each."""
        return zip(
            self.epoch, self.round, self.variant, self.times_s, self.ended, self.steps, strict=True
        )


class SoloRun(VariantEvent, frozen=True):
    """A variant ran alone from `started` to `ended`: so many steps, of `time_s` in the median."""

    started: Moment
    ended: Moment
    steps: PositiveCount
    time_s: StepTime
    restored_bytes: Count = 0
    """Traffic of restoring the state meanwhile, which belongs to none of its steps."""
    low_s: StepTime | None = None
    high_s: StepTime | None = None
    """The ends of the interval of `time_s` over its blocks."""


class OtherClock(VariantEvent, frozen=True):
    """The same blocks by the clock that the verdict does not take: one per epoch, seconds per step.

    `exposed`: it is the device's, and holds gaps between launches that could not be hidden.
    `sm_mhz`: the clock of the SMs just before each block, where it is the device's.
    """

    clock: Clock
    times_s: list[Seconds]
    exposed: bool = False
    sm_mhz: list[Amount] = []


class FirstSteps(VariantEvent, frozen=True):
    """The first steps of a variant in a process where nothing else ran, each timed by itself
    (seconds).

    `build_s` came before them.
    """

    process: Index
    build_s: Seconds
    times_s: list[StepTime]


class Stopped(Event, frozen=True):
    """Why measuring ended."""

    reason: StopReason


class Reported(Event, frozen=True, omit_defaults=False):
    """`lab.report(name, value)` of a variant."""

    variant: Name | None
    name: Name
    value: float | None


PIPE_LOST, DEVICE_LOST = 97, 98
"""Exit codes of a worker whose event pipe was taken from it, and of one whose device is in error
for good.
"""


class RunStarted(Event, frozen=True):
    """Written by the session before anything runs. `at` is UTC, ISO 8601."""

    request: RunRequest
    at: Name
    host: Line


class WorkerReady(Event, frozen=True):
    """The worker, or a program that is followed, has its device. `environment` holds versions;
    None where something is not installed.
    """

    pid: Count
    device: Device
    environment: dict[Name, Line | None]


class StageStarted(Event, frozen=True):
    """`detail` is what a stage without variants is at, such as the roof that is measured."""

    stage: Stage
    variant: Name | None = None
    detail: Line | None = None


class VariantFailed(Event, frozen=True, omit_defaults=False):
    """`variant` None: the whole run. `line` is in the scenario's file."""

    multi_line = ("traceback",)
    variant: Name | None
    kind: FailureKind
    stage: Stage
    cause: Finding
    line: Count | None = None
    traceback: Text = ""


class Log(Event, frozen=True):
    """Lines that the scenario wrote to stdout or stderr, made safe to show."""

    lines: list[Line]
    skipped: Count = 0
    """Lines left out just before these: the log has its first and its last KEPT_LINES."""


class FindingMade(Event, frozen=True, tag="Noticed"):
    """Something the reader of the result must know. `explains`: it weakens nothing."""

    finding: Finding
    explains: bool = False


class Looked(Event, frozen=True):
    """The answer to a look at one step, for whoever asked: it is part of no run."""

    answer: msgspec.Raw


class WorkerExited(Event, frozen=True):
    """The supervisor's last word: how the worker ended, where it was, and what faulthandler
    wrote.
    """

    code: Count | None
    signal: SignalNumber | None
    stage: Stage
    variant: Name | None
    trace: Text = ""
    orphans: Count = 0
    """Processes that the worker left running, and that were killed."""


class WorkerDone(Event, frozen=True):
    """The worker did its whole job; `sent` counts its events before this one."""

    sent: Count


class RunInvalid(Event, frozen=True):
    """A reason why the whole run proves nothing: none of its verdicts holds."""

    reason: Finding


class RunEnded(Event, frozen=True):
    outcome: Outcome


EVENTS = tuple(
    kind
    for kind in (*Event.__subclasses__(), *VariantEvent.__subclasses__())
    if kind is not VariantEvent
)
"""Those of the core."""
