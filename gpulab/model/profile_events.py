"""Where the time of a step goes: phases between marks, and what a profiler recorded."""

from __future__ import annotations

from msgspec.structs import replace

from gpulab.model.event import Event
from gpulab.model.goodput import Partition
from gpulab.model.operations import Operation


class Phases(Event, frozen=True):
    """One window of steps with marks on, and no timed sample in it: seconds of the innermost mark; '' is unmarked.

    `ran`: those of them in which the thread ran, on a CPU; on a GPU it may be ahead, so there are none.
    """

    variant: str
    steps: int
    seconds: dict[str, float]
    ran: dict[str, float] = {}

    def after(self, before: Phases | None) -> Phases:
        """This window together with those before it."""
        if before is None:
            return self
        return replace(
            self,
            steps=before.steps + self.steps,
            seconds=_sums(before.seconds, self.seconds),
            ran=_sums(before.ran, self.ran),
        )


def _sums(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}


class Profiled(Event, frozen=True):
    """A window under the profiler, in a worker of its own.

    `plain_s` and `profiled_s` are per step, without and with the profiler; `same` whether two recordings hold the
    same operations; `peak_bytes` is the most memory of the device that one step had allocated, where it was asked for.
    """

    variant: str
    steps: int
    plain_s: float
    profiled_s: float
    partition: Partition
    operations: list[Operation]
    same: bool
    trace: str | None = None
    peak_bytes: int | None = None
