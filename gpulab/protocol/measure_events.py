"""What a worker reports while it prepares, checks and measures variants."""

from __future__ import annotations

from collections.abc import Sized

from gpulab.protocol.ceiling import Ceiling
from gpulab.protocol.event import Event
from gpulab.protocol.finding import Finding
from gpulab.protocol.statuses import CheckTime, Clock, Stage, StopReason


class Built(Event, frozen=True):
    """The first build of a variant in this process, and its very first step (both in seconds)."""

    variant: str
    build_s: float
    first_step_s: float
    items: float
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None


class Counted(Event, frozen=True):
    """One untimed step: the operations that the host started, and the FLOPs that torch counts of them.

    `flops` is None where some operation has no formula.
    """

    variant: str
    operations: int
    flops: int | None


class CeilingsMeasured(Event, frozen=True):
    """All ceilings of the device known so far, in place of those of an earlier event. `at` is UTC, ISO 8601.

    `cached`: measured in another run on this device, with this driver, power limit, torch and number of threads.
    `cache_bytes`: the most that the last-level cache was seen to hold, None where its size is not in doubt.
    """

    ceilings: tuple[Ceiling, ...]
    at: str
    cache_bytes: int | None = None
    cached: bool = False
    complete: bool = False
    """Everything was tried, nothing ran out of memory, and all that matters is steady: worth keeping."""


class Checked(Event, frozen=True):
    """Outputs against the baseline's: `error` is the relative Frobenius error, None where nothing was compared."""

    variant: str
    when: CheckTime
    ok: bool
    error: float | None = None
    tolerance: float | None = None
    reason: Finding | None = None


class Unchecked(Event, frozen=True):
    """The outputs of a variant could not be compared: there is nothing to compare, for this reason."""

    variant: str
    reason: Finding


class VariantRefused(Event, frozen=True):
    """The variant breaks the rules of a fair comparison (items, global settings): it is not measured."""

    variant: str
    reason: Finding


class VariantSkipped(Event, frozen=True):
    """Left out: the device cannot do it (`lab.skip`), or a smaller one did not fit."""

    variant: str
    reason: Finding


class OutOfMemory(Event, frozen=True):
    """A variant of a scenario with increasing memory does not fit. Others report it as `VariantFailed`."""

    variant: str
    stage: Stage
    cause: Finding


class Calibrated(Event, frozen=True):
    """Steps per block, and the time of an empty block of that clock (what a block costs beside its steps)."""

    variant: str
    steps_per_block: int
    step_s: float
    empty_block_s: float


class WarmedUp(Event, frozen=True):
    """The warm-up's own samples (seconds per step), kept apart; `drift` is the last relative change."""

    variant: str
    times_s: list[float]
    drift: float
    drifting: bool


class Planned(Event, frozen=True):
    """What the engine will do: rounds per epoch, and epochs before width may stop it.

    `expensive`: builds are too expensive for enough epochs, so intervals are over pairs, with a wider floor.
    """

    rounds: int
    epochs: int
    floor: float
    expensive: bool


class Samples(Event, frozen=True):
    """Timed blocks in the order they ran: one entry per block in every column.

    `ended` is when a block was over, `steps` how many it timed. `times_s` and `cpu_s` are per step, `faults` (minor
    page faults) and `switches` (involuntary context switches) per block; `variant` indexes into `names`. Epochs below
    `complete` have all their rounds sent. ValueError where the columns do not fit together: a line that a scenario
    wrote, not the lab.
    """

    names: tuple[str, ...]
    complete: int
    epoch: list[int]
    round: list[int]
    variant: list[int]
    times_s: list[float]
    cpu_s: list[float]
    faults: list[int]
    switches: list[int]
    ended: list[float] = []
    steps: list[int] = []
    sm_mhz: list[float] = []
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
        if len(set(map(len, columns))) > 1 or not all(0 <= index < len(self.names) for index in self.variant):
            raise ValueError("samples whose columns do not fit together")


class SoloRun(Event, frozen=True):
    """A variant ran alone from `started` to `ended`: so many steps, of `time_s` in the median."""

    variant: str
    started: float
    ended: float
    steps: int
    time_s: float
    restored_bytes: int = 0
    """Traffic of restoring the state meanwhile, which belongs to none of its steps."""


class OtherClock(Event, frozen=True):
    """The same blocks by the clock that the verdict does not take: one per epoch, seconds per step.

    `exposed`: it is the device's, and holds gaps between launches that could not be hidden.
    """

    variant: str
    clock: Clock
    times_s: list[float]
    exposed: bool = False


class Stopped(Event, frozen=True):
    """Why measuring ended."""

    reason: StopReason


class Reported(Event, frozen=True):
    """`lab.report(name, value)` of a variant."""

    variant: str | None
    name: str
    value: float | None
