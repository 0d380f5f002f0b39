"""What crosses the boundary: one request to the worker, and the one stream of events that comes back.

Names and numbers only: callables, tensors and exceptions never cross. Lines of JSON, one struct a line, tagged by
`type`.
"""

from __future__ import annotations

from typing import Any

from gpulab.model.ceilings import Ceiling
from gpulab.model.event import Event as Event
from gpulab.model.profile_events import Phases as Phases
from gpulab.model.profile_events import Profiled as Profiled
from gpulab.model.request import Device, RunRequest
from gpulab.model.telemetry_events import Telemetry as Telemetry
from gpulab.model.telemetry_events import TelemetryLost as TelemetryLost
from gpulab.model.telemetry_events import TelemetryStarted as TelemetryStarted
from gpulab.model.telemetry_events import TelemetrySwitched as TelemetrySwitched

LOST_PIPE, LOST_DEVICE = 97, 98
"""Exit codes of a worker whose event pipe was taken from it, and of one whose device is in error for good."""

STAGES = (
    "start",
    "load",
    "build",
    "check",
    "calibrate",
    "warm-up",
    "count",
    "ceilings",
    "measure",
    "soak",
    "re-check",
    "profile",
    "teardown",
    "end",
)


class RunStarted(Event, frozen=True):
    """Written by the session before anything runs. `at` is UTC, ISO 8601."""

    request: RunRequest
    at: str
    host: str


class WorkerReady(Event, frozen=True):
    """The worker has its device. `environment` holds versions; None where something is not there."""

    pid: int
    device: Device
    environment: dict[str, str | None]


class StageStarted(Event, frozen=True):
    stage: str
    variant: str | None = None


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
    """One untimed step, looked into: operations that the host started, and the FLOPs that torch counts of them.

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
    whole: bool = False
    """Everything was tried, none for want of memory, and all that matters is steady: worth keeping."""


class Checked(Event, frozen=True):
    """Outputs against the baseline's: `error` is the relative Frobenius error, None where nothing was compared."""

    variant: str
    when: str
    ok: bool
    error: float | None = None
    tolerance: float | None = None
    reason: str | None = None


class VariantRefused(Event, frozen=True):
    """The variant breaks the rules of a fair comparison (items, global settings): it is not measured."""

    variant: str
    reason: str


class VariantSkipped(Event, frozen=True):
    """Left out: the device cannot do it (`lab.skip`), or a smaller one did not fit."""

    variant: str
    reason: str


class OutOfMemory(Event, frozen=True):
    """The variant of a scenario that grows does not fit into memory. Others report it as `VariantFailed`."""

    variant: str
    stage: str
    message: str


class VariantFailed(Event, frozen=True):
    """`kind`: error, exit, out of memory, device, crash, killed, timeout, cancelled. `variant` None: the whole run."""

    variant: str | None
    kind: str
    stage: str
    message: str
    line: int | None = None
    traceback: str = ""


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
    """What the engine will do: rounds per epoch, epochs before width may stop it, and whether builds are dear."""

    rounds: int
    epochs: int
    floor: float
    dear: bool


class Samples(Event, frozen=True):
    """Timed blocks in the order they ran: one entry a block in every column.

    `ended` is when a block was over, `steps` how many it timed (both missing in files of before they were kept);
    `times_s` and `cpu_s` are per step, `faults` (minor page faults) and `switches` (involuntary context
    switches) per block; `variant` indexes into `names`. Epochs below `complete` have all their rounds sent.
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
        """ValueError where the columns do not fit together: a line that a scenario wrote, not the lab."""
        columns: list[list[Any]] = [
            self.epoch,
            self.round,
            self.variant,
            self.times_s,
            self.cpu_s,
            self.faults,
            self.switches,
        ]
        columns += [self.ended, self.steps] if self.ended or self.steps else []
        if len({len(column) for column in columns}) > 1 or not all(0 <= i < len(self.names) for i in self.variant):
            raise ValueError("samples whose columns do not fit together")


class Soaked(Event, frozen=True):
    """A variant ran alone, from `started` to `ended` on the events' clock: so many steps, of `time_s` in the median."""

    variant: str
    started: float
    ended: float
    steps: int
    time_s: float
    restored_bytes: int = 0
    """Traffic of putting the state back meanwhile, which is none of its steps'."""


class OtherClock(Event, frozen=True):
    """The same blocks by the clock that the verdict does not take: one an epoch, seconds per step.

    `exposed`: it is the device's, and has gaps between launches in it, which could not be hidden.
    """

    variant: str
    clock: str
    times_s: list[float]
    exposed: bool = False


class Stopped(Event, frozen=True):
    """Why measuring ended: width, time, epochs."""

    reason: str


class Reported(Event, frozen=True):
    """`lab.report(name, value)` of a variant."""

    variant: str | None
    name: str
    value: float | None


class Log(Event, frozen=True):
    """Lines the scenario wrote to stdout or stderr; control characters are taken out."""

    lines: list[str]
    skipped: int = 0
    """Lines left out just before these: the log keeps its first and its last 1,000."""


class Noticed(Event, frozen=True):
    """Something the reader of the result must know."""

    text: str


class WorkerExited(Event, frozen=True):
    """The warden's last word: how the worker ended, where it was, and what faulthandler wrote."""

    code: int | None
    signal: int | None
    stage: str
    variant: str | None
    trace: str = ""
    orphans: int = 0


class WorkerDone(Event, frozen=True):
    """The worker did all it was asked to; `sent` counts its events before this one, so that a lost one shows."""

    sent: int


class RunEnded(Event, frozen=True):
    """`outcome`: done, failed, timeout, cancelled."""

    outcome: str


AnyEvent = (
    RunStarted
    | WorkerReady
    | StageStarted
    | Built
    | Counted
    | CeilingsMeasured
    | Phases
    | Profiled
    | Checked
    | VariantRefused
    | VariantSkipped
    | OutOfMemory
    | VariantFailed
    | Calibrated
    | WarmedUp
    | Planned
    | Samples
    | Soaked
    | OtherClock
    | Telemetry
    | TelemetryStarted
    | TelemetryLost
    | TelemetrySwitched
    | Stopped
    | Reported
    | Log
    | Noticed
    | WorkerExited
    | WorkerDone
    | RunEnded
)
