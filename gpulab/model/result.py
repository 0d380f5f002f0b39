"""The result of one or more runs as `--json` writes it (schema gpulab.result/1, only ever added to).

Unknown is None, never NaN. Times are seconds per step.
"""

from __future__ import annotations

import msgspec

from gpulab.model.ceilings import Ceiling
from gpulab.model.compare import FLOOR, Comparison
from gpulab.model.operations import Operation
from gpulab.model.request import Device
from gpulab.model.roofline import Point
from gpulab.model.scenario import Param
from gpulab.model.stats import CONFIDENCE

UNDER_WAY = "under way"
CLOSE = 0.05
"""A time per item within this of the best one is as good, where what it costs is memory or latency."""
SCHEMA = "gpulab.result/1"
MEASURED, USAGE, FAILED, WRONG, SLOWER, INCONCLUSIVE, INVALID, INTERRUPTED = 0, 2, 3, 4, 5, 6, 7, 130
PRECEDENCE = (INTERRUPTED, USAGE, FAILED, WRONG, INVALID, SLOWER, INCONCLUSIVE, MEASURED)
OUTCOMES = {
    MEASURED: "measured",
    USAGE: "usage",
    FAILED: "failed",
    WRONG: "wrong",
    SLOWER: "slower than demanded",
    INCONCLUSIVE: "inconclusive",
    INVALID: "invalid",
    INTERRUPTED: "interrupted",
}


class Method(msgspec.Struct, frozen=True, kw_only=True):
    clock: str = "wall"
    cache: str = "hot"
    epochs: int = 0
    rounds: int = 0
    confidence: float = CONFIDENCE
    floor: float = FLOOR
    unit: str = "epoch medians"
    empty_block_s: float | None = None
    stopped: str | None = None


class Time(msgspec.Struct, frozen=True, kw_only=True):
    """Low and high are None where there were too few epochs for an interval."""

    median: float
    low: float | None = None
    high: float | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True):
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: str = "inconclusive"


class Soak(msgspec.Struct, frozen=True, kw_only=True):
    """A variant alone: seconds, readings, median time per step, joules per item, and the means of what was read."""

    seconds: float
    readings: int
    time_s: float
    energy_j: float | None = None
    means: dict[str, float] = {}
    clocks: str = "n/a"
    """Letters of what held the clocks back meanwhile: T thermal, H hardware, B power brake, P power cap; or ok."""


class TelemetryResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was sampled: a GPU, or `why` none; `unsupported` says why a field has no value."""

    gpu: str | None = None
    uuid: str | None = None
    why: str | None = None
    lost: str | None = None
    readings: int = 0
    unsupported: dict[str, str] = {}
    limits: dict[str, float] = {}
    health: dict[str, float] = {}


class Goodput(msgspec.Struct, frozen=True, kw_only=True):
    """Where the time of a step goes. Shares of the step; seconds per step.

    `phases` are the shares of the marks in windows of their own, the live figure: on a GPU an upper bound, since gaps
    between launches count. `goodput` and `partition` are of the profiled window: `why` doubts it, where it must be
    doubted. `efficiency` is ideal time by the roofline over useful time, `product` ideal time over all of it;
    `hidden` is the share of the time of a device's copies in which better work ran beside them. `items_per_s` is of
    an output that was checked.
    """

    phases: dict[str, float] = {}
    ran: dict[str, float] = {}
    """Of each of the phases, the share in which the thread ran; on a CPU."""
    goodput: float | None = None
    partition: dict[str, float] = {}
    marked: bool = False
    """Whether the step says what is useful; else everything that torch computes counts."""
    efficiency: float | None = None
    product: float | None = None
    hidden: float | None = None
    items_per_s: float | None = None
    overhead: float | None = None
    """What the profiler adds to a step, relative."""
    reliable: bool | None = None
    why: str | None = None
    operations: list[Operation] = []
    """Calls and seconds of one step."""
    steps: int | None = None
    """How many of them the window had."""
    peak_bytes: int | None = None
    trace: str | None = None


class VariantResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    status: str
    reason: str | None = None
    summary: str = ""
    claim: str | None = None
    unchecked: str | None = None
    items: float | None = None
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    time_s: Time | None = None
    clocks: dict[str, float] = {}
    """Median seconds per step by each clock that was used."""
    steps_per_block: int | None = None
    contention: float | None = None
    faults_per_block: float | None = None
    switches_per_block: float | None = None
    sm_mhz: float | None = None
    """Mean clock of the SMs just before each block, by the device clock's spin."""
    build_s: float | None = None
    first_step_s: float | None = None
    drifting: bool | None = None
    error: float | None = None
    soak: Soak | None = None
    operations: int | None = None
    """Operations that the host starts in a step, as torch counts them; views are none."""
    flops_counted: int | None = None
    """Of products, convolutions and attention, by torch's own formulas; None where some operation has none."""
    roofline: Point | None = None
    goodput: Goodput | None = None
    stage: str | None = None
    line: int | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    variant: str | None
    name: str
    value: float | None


class CeilingsResult(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the device, measured `at` a time (UTC), perhaps in an earlier run, with what its datasheet says."""

    at: str | None = None
    cached: bool = False
    ceilings: list[Ceiling] = []


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Fixes one by one and all at once: the product of their own speedups, and the speedup of all of them."""

    promised: float
    speedup: float
    low: float | None = None
    high: float | None = None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    scenario: str
    title: str = ""
    source_sha256: str = ""
    params: dict[str, bool | int | float | str] = {}
    seed: int = 0
    smoke: bool = False
    quick: bool = False
    functions: bool = False
    per: str = "step"
    device: Device | None = None
    method: Method = Method()
    control: Control | None = None
    claim: str = ""
    run_file: str = ""
    outcome: str = ""
    exit_code: int = 0
    reason: str | None = None
    warnings: list[str] = []
    variants: list[VariantResult] = []
    comparisons: list[Comparison] = []
    same: str = ""
    together: Together | None = None
    sweet_spot: str | None = None
    telemetry: TelemetryResult | None = None
    ceilings: CeilingsResult | None = None
    reports: list[Report] = []


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Several runs of one scenario, one a value of a parameter; `best` is the value with the least time per item."""

    scenario: str
    parameter: str
    best: dict[str, Param] = {}


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """What `--calibrate --json` writes (schema gpulab.ceilings/1)."""

    schema: str = "gpulab.ceilings/1"
    outcome: str = "measured"
    exit_code: int = 0
    reason: str | None = None
    environment: dict[str, str | None] = {}
    device: Device | None = None
    at: str | None = None
    ceilings: list[Ceiling] = []
    warnings: list[str] = []
    run_file: str = ""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    outcome: str = "measured"
    exit_code: int = 0
    environment: dict[str, str | None] = {}
    runs: list[RunResult] = []
    sweeps: list[Sweep] = []
