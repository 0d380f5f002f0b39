"""What is known of one step beside its time: what was declared, counted and seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from gpulab.analysis.ceilings import RoofSet
from gpulab.protocol.finding import Value

_MOST_CONTENTION = 0.99


@dataclass(frozen=True)
class DeviceCounters:
    """What a GPU counted while a variant ran alone: shares of the device's own time, and watts."""

    sm: float | None = None
    """SMs with any warp on them."""
    occupancy: float | None = None
    tensor: float | None = None
    fp64: float | None = None
    fp32: float | None = None
    fp16: float | None = None
    dram: float | None = None
    power: float | None = None
    limit: float | None = None
    capped: bool = False
    """Whether the driver said that power held the clocks back."""

    @property
    def values(self) -> dict[str, Value]:
        """All that are known, as values of a finding."""
        known = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in known.items() if value is not None and name != "capped"}

    def busiest_pipe(self, least: float) -> str | None:
        """The arithmetic pipe that works for at least this share; None where none does."""
        pipes = {name: getattr(self, name) or 0.0 for name in ("tensor", "fp64", "fp32", "fp16")}
        busiest = max(pipes, key=lambda name: pipes[name])
        return busiest if pipes[busiest] >= least else None

    def at_power_cap(self, least: float) -> bool:
        """Whether power held the clocks back, and at least this share of the limit was drawn in the mean."""
        return self.capped and self.power is not None and bool(self.limit) and self.power >= least * (self.limit or 0.0)


@dataclass(frozen=True)
class StepFacts:
    """What is known of one step. Bytes and FLOPs are declared; the rest was measured, and None where it was not."""

    seconds: float
    bytes: int | None = None
    flops: int | None = None
    dtype: str | None = None
    launches: int | None = None
    """Operations that the host starts in a step."""
    on_gpu: bool = False
    waiting: float | None = None
    """Share of the step in which the device waits for the host; None where the time is the device's own."""
    launching: float | None = None
    """Share of the step in which it does so while the host starts operations, as recorded."""
    device_s: float | None = None
    """The device's own time of a step."""
    counters: DeviceCounters | None = None
    dram_bytes: float | None = None
    """What the device counted between itself and its memory."""
    contention: float | None = None
    """Share of the step in which the measuring thread of a CPU did not run."""
    faults: float | None = None
    """Minor page faults of a step."""
    strided: float | None = None
    """Share of the bytes of its operands that lie apart from each other."""
    cache_bytes: int = 0
    cache_seen: bool = False
    """Whether so much was seen to stay in the cache; else it is the nominal size, of which half is safe."""
    hot: bool = True
    roof: str | None = None
    """The roof that the scenario names: of the links only, all others follow from the work."""
    waiting_phase: tuple[str, float] | None = None
    """The phase in which the step waits longest, and its share of the time."""

    @property
    def units(self) -> str:
        """The dtype whose arithmetic is meant."""
        return self.dtype or "fp32"


@dataclass(frozen=True)
class HostCosts:
    """What the host is known to spend on something else than the work, None where it is not known.

    Launches and page faults are shares of the time in which the thread runs.
    """

    launches: float | None = None
    """What starting as many bare operations costs, as the launch ceiling has it."""
    page_faults: float | None = None
    preempted: float | None = None

    @classmethod
    def of(cls, facts: StepFacts, roofs: RoofSet) -> HostCosts:
        launch_s, fault_s = roofs.launch_s(), roofs.fault_s()
        running_s = facts.seconds * (1 - min(facts.contention or 0.0, _MOST_CONTENTION))
        return cls(
            launches=facts.launches * launch_s / running_s if launch_s and facts.launches else None,
            page_faults=facts.faults * fault_s / running_s if fault_s and facts.faults else None,
            preempted=facts.contention,
        )

    @property
    def _shares(self) -> Mapping[str, float]:
        return {
            "launch": min(self.launches or 0.0, 1.0),
            "page faults": min(self.page_faults or 0.0, 1.0),
        }

    @property
    def dominant(self) -> tuple[str, float]:
        """The largest of them."""
        return max(self._shares.items(), key=lambda item: item[1])

    @property
    def largest(self) -> float:
        return self.dominant[1]

    @property
    def values(self) -> dict[str, Value]:
        """Those that are known, as values of a finding."""
        known = {"launching": self.launches, "faulting": self.page_faults, "preempted": self.preempted}
        return {name: share for name, share in known.items() if share is not None}

    def launching_of_waiting(self, facts: StepFacts) -> float | None:
        """The share of the step that launches keep a device waiting: as recorded, else at most what they cost bare."""
        return facts.launching if facts.launching is not None else self.launches
