"""What a worker reports while it prepares, checks and measures variants."""

from __future__ import annotations

from collections.abc import Sized

from gpulab.protocol.ceiling import Ceiling
from gpulab.protocol.event import Event
from gpulab.protocol.finding import Finding
from gpulab.protocol.kernels import KernelCode
from gpulab.protocol.statuses import CheckTime, Clock, Stage, StopReason
from gpulab.protocol.tuning import Choice
from gpulab.protocol.values import (
    Amount,
    Count,
    Fraction,
    Index,
    Items,
    Moment,
    Name,
    Number,
    PositiveCount,
    Seconds,
    StepTime,
)


class Built(Event, frozen=True):
    """The first build of a variant in this process, and its very first step (both in seconds)."""

    variant: Name
    build_s: Seconds
    first_step_s: Seconds
    items: Items
    bytes: Count | None = None
    flops: Count | None = None
    dtype: Name | None = None


class Counted(Event, frozen=True):
    """One untimed step: the operations that the host started, and the FLOPs that torch counts of them.

    `flops` is None where some operation has no formula.
    """

    variant: Name
    operations: Count
    flops: Count | None
    operand_bytes: Count | None = None
    """Bytes of the tensors that its operations read and write, each counted as often as it is one of an operation's."""
    strided_bytes: Count = 0
    """Those of them whose elements an operation does not find in their order in memory."""
    distinct_bytes: Count | None = None
    """Bytes of memory below all of them, each counted once."""
    fewer_flops: bool = False
    """Whether some operation may compute its result with fewer FLOPs than its formula has: convolutions."""


class KernelsCompiled(Event, frozen=True):
    """What the compiler made of the CUDA C++ kernels of a variant's first build."""

    variant: Name
    kernels: list[KernelCode]


class Tuned(Event, frozen=True):
    """What a variant chose with `gpulab.tune`; `cached`: in an earlier run."""

    variant: Name
    choice: Choice
    cached: bool = False


class CeilingsMeasured(Event, frozen=True):
    """All ceilings of the device known so far, in place of those of an earlier event. `at` is UTC, ISO 8601.

    `cached`: measured in another run on this device, with this driver, power limit, torch and number of threads.
    `cache_bytes`: the most that the last-level cache was seen to hold, None where its size is not in doubt.
    """

    ceilings: tuple[Ceiling, ...]
    at: Name
    cache_bytes: Count | None = None
    cached: bool = False
    complete: bool = False
    """Everything was tried, nothing ran out of memory, and all that matters is steady: worth keeping."""


class Checked(Event, frozen=True):
    """Outputs against the baseline's: `error` is the relative Frobenius error, None where nothing was compared."""

    variant: Name
    when: CheckTime
    ok: bool
    error: Amount | None = None
    tolerance: Amount | None = None
    reason: Finding | None = None


class Unchecked(Event, frozen=True):
    """The outputs of a variant could not be compared: there is nothing to compare, for this reason."""

    variant: Name
    reason: Finding


class VariantRefused(Event, frozen=True):
    """The variant breaks the rules of a fair comparison (items, global settings): it is not measured."""

    variant: Name
    reason: Finding


class VariantSkipped(Event, frozen=True):
    """Left out: the device cannot do it (`lab.skip`), or a smaller one did not fit."""

    variant: Name
    reason: Finding


class OutOfMemory(Event, frozen=True):
    """A variant of a scenario with increasing memory does not fit. Others report it as `VariantFailed`."""

    variant: Name
    stage: Stage
    cause: Finding


class Calibrated(Event, frozen=True):
    """Steps per block, and the time of an empty block of that clock (what a block costs beside its steps)."""

    variant: Name
    steps_per_block: PositiveCount
    step_s: StepTime
    empty_block_s: Seconds


class WarmedUp(Event, frozen=True):
    """The warm-up's own samples (seconds per step), kept apart; `drift` is the last relative change."""

    variant: Name
    times_s: list[StepTime]
    drift: Number
    drifting: bool
    steps: Count = 0
    """Of each sample. 0 in files of earlier versions: about those of a block."""


class Planned(Event, frozen=True, kw_only=True):
    """What the engine will do: `epochs` of so many rounds in each process, `processes` before width may stop it.

    `expected_s`: how long measuring takes from here, if nothing stops it early, by what the first builds and steps
    took.
    """

    rounds: Index
    epochs: Index
    floor: Fraction = 0.01
    processes: Index = 0
    """0 in files from before processes were recorded: `epochs` are those of the whole run."""
    expected_s: Seconds | None = None


class Samples(Event, frozen=True):
    """Timed blocks in the order they ran: one entry per block in every column.

    `ended` is when a block was over, `steps` how many it timed. `times_s` and `cpu_s` are per step, `faults` (minor
    page faults) and `switches` (involuntary context switches) per block; `variant` indexes into `names`. Epochs below
    `complete` have all their rounds sent. ValueError where the columns do not fit together: a line that a scenario
    wrote, not the lab.
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
    ended: list[Moment] = []
    steps: list[PositiveCount] = []
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
        ]
        columns += [self.ended, self.steps] if self.ended or self.steps else []
        columns += [self.sm_mhz] if self.sm_mhz else []
        if len(set(map(len, columns))) > 1 or max(self.variant, default=-1) >= len(self.names):
            raise ValueError("samples whose columns do not fit together")


class AloneRun(Event, frozen=True, kw_only=True):
    """Seconds per step of a variant, back to back, before others were built for the rounds of a process.

    `later_s`: the same after the last round. `first`: no other variant had been built in that process before.
    """

    variant: Name
    process: Index
    time_s: StepTime
    later_s: StepTime | None = None
    first: bool = True


class SoloRun(Event, frozen=True):
    """A variant ran alone from `started` to `ended`: so many steps, of `time_s` in the median."""

    variant: Name
    started: Moment
    ended: Moment
    steps: PositiveCount
    time_s: StepTime
    restored_bytes: Count = 0
    """Traffic of restoring the state meanwhile, which belongs to none of its steps."""
    low_s: StepTime | None = None
    high_s: StepTime | None = None
    """The ends of the interval of `time_s` over its blocks."""


class OtherClock(Event, frozen=True):
    """The same blocks by the clock that the verdict does not take: one per epoch, seconds per step.

    `exposed`: it is the device's, and holds gaps between launches that could not be hidden.
    """

    variant: Name
    clock: Clock
    times_s: list[Seconds]
    exposed: bool = False


class FirstSteps(Event, frozen=True):
    """The first steps of a variant in a process where nothing else ran, each timed by itself (seconds).

    `build_s` came before them.
    """

    variant: Name
    process: Index
    build_s: Seconds
    times_s: list[StepTime]


class Stopped(Event, frozen=True):
    """Why measuring ended."""

    reason: StopReason


class Reported(Event, frozen=True):
    """`lab.report(name, value)` of a variant."""

    variant: Name | None
    name: Name
    value: float | None
