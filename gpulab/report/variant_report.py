"""What a report says of one variant: times, rates, memory, the first steps, and what was recorded of it."""

from __future__ import annotations

from typing import assert_never

import msgspec

from gpulab.analysis.kernels.changes import KernelDifference
from gpulab.analysis.roofline import Cause, Point
from gpulab.protocol.finding import Finding
from gpulab.protocol.kernels import KernelCode
from gpulab.protocol.statuses import Per, Stage, Status
from gpulab.protocol.tuning import Tuning
from gpulab.report.goodput.goodput_report import GoodputReport


class Time(msgspec.Struct, frozen=True, kw_only=True):
    """Low and high are None where there were too few epochs for an interval."""

    median: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval, low and high; the median where there is none."""
        return (
            self.median if self.low is None else self.low,
            self.median if self.high is None else self.high,
        )

    def over(self, count: float) -> Time:
        """The time of one of `count` parts."""
        low, high = (None if end is None else end / count for end in (self.low, self.high))
        return Time(median=self.median / count, low=low, high=high)


class SoloReport(msgspec.Struct, frozen=True, kw_only=True):
    """A variant alone: seconds, readings, median time per step, joules per item, and the means of what was read."""

    seconds: float
    readings: int
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    """The ends of the interval of `time_s`; None in files from before it was recorded."""
    items_per_s: float | None = None
    energy_j: float | None = None
    means: dict[str, float] = {}
    clocks: str = "n/a"
    """Letters of what held the clocks back meanwhile: T thermal, H hardware, B power brake, P power cap; or ok."""
    bytes_per_s: float | None = None
    flops_per_s: float | None = None
    """Both derived from declared work."""


class CurveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The first steps of a variant in fresh processes, each step's time over them, in seconds.

    After `settled_after` steps the next ones take at most 1.1 times a settled one; None: they do not settle. `excess_s`
    is what those before cost beyond settled ones. `build_s` came before them.
    """

    processes: int
    build_s: Time
    steps: list[Time]
    settled_s: Time
    settled_after: int | None
    excess_s: Time


class MemoryReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a variant alone needs of the device's memory, in bytes: held between steps, at most in a step, and what
    torch reserved of the device for it (None on a CPU).
    """

    held: int
    peak: int
    reserved: int | None = None


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
    """Share of the timed wall time in which the measuring thread did not run; of one thread on a CPU."""
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
    solo_run: SoloReport | None = None
    operations: int | None = None
    """Operations that the host starts in a step, as torch counts them; views are none."""
    flops_counted: int | None = None
    """Of products, convolutions and attention, by torch's own formulas; None where some operation has none."""
    cause: Cause | None = None
    """What limits its step, declared or not; None where nothing is known of that."""
    roofline: Point | None = None
    goodput: GoodputReport | None = None
    memory: MemoryReport | None = None
    first_steps: CurveReport | None = None
    kernels: list[KernelCode] = []
    """CUDA C++ of its own, as the compiler made it."""
    kernel_difference: KernelDifference | None = None
    """What its kernels have more or less than those of the variant that it is compared with."""
    tuning: Tuning | None = None
    """What `gpulab.tune` chose, and from which candidates."""
    tuning_cached: bool = False
    """Whether it was measured in an earlier run."""
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
