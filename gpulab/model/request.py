"""What is asked of a worker: one request, all that it and a reader of the run file need to know."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from gpulab.model.scenario import CONTROL, Param

CANCEL, KNOWN = b"c", b"k"
"""What the session may tell a run under way: to stop, and that the device's ceilings are known."""


class VariantInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A variant as the catalog read it; `missing` says which need the machine does not meet."""

    name: str
    summary: str = ""
    against: str | None = None
    claim: str | None = None
    unchecked: str | None = None
    missing: str | None = None


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """All the worker needs to know, and all a reader of the run file needs to know of what was asked."""

    scenario: str
    path: str
    source_sha256: str
    variants: tuple[VariantInfo, ...]
    title: str = ""
    topic: str = ""
    claim: str = ""
    same: str = ""
    """Why an effect may not exist on a device: said beside the verdict `same`."""
    roof: str | None = None
    per: str = "step"
    ladder: bool = False
    alone: bool = False
    grows: bool = False
    """Each variant needs more memory than the one above: the first that does not fit is reported, and no failure."""
    functions: bool = False
    """Time plain functions of the file: no Scenario, no check, no comparison."""
    params: dict[str, Param] = {}
    env: dict[str, str | None] = {}
    device: str = "cpu"
    threads: int = 1
    time_s: float = 10.0
    seed: int = 0
    smoke: bool = False
    timeout_s: float | None = None
    clock: str = "wall"
    cache: str = "hot"
    stop_early: bool = True
    """Whether narrow intervals end the run before its time is spent."""
    ceilings: str = "none"
    """Which ceilings of the device to measure: none, needed (by the declared work), or all.

    A GPU's are kept, and a quick run does with what is kept.
    """
    quick: bool = False
    """A short run for the impatient: fewer epochs, wider intervals, said with every result."""
    profile: bool = False
    """Whether a second worker shows where the time of a step goes."""
    profiling: tuple[str, ...] = ()
    """In that worker: the variants to profile, and nothing else to do."""
    trace: str | None = None
    """The file for a trace of the profiled steps; of several variants each has its name in its own."""
    memory: str | None = None
    """Where snapshots of a GPU's memory go, a path without its end; a peak of allocated memory is wanted."""
    telemetry: str = "on"
    """on, off, or the index or UUID of the GPU to sample whatever the run is on."""

    def pairs(self, measured: Container[str]) -> list[tuple[str, str]]:
        """(variant, against) of every comparison that can be made of what is measured, the control's first."""
        names = [info.name for info in self.variants if info.name in measured]
        if not names or not (self.functions or names[0] == self.variants[0].name):
            return []
        below = names[0]
        found = [(CONTROL, below)]
        for info in self.variants[1:]:
            if info.name in measured and info.against is not None and info.against in measured:
                found.append((info.name, info.against))
                if self.ladder and below != info.against:
                    found.append((info.name, below))
                below = info.name
        return found


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Whom telemetry samples: the worker's process, and a GPU by index or UUID. `on` is the one the worker runs on."""

    worker: int
    gpu: str | None = None
    on: str | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    name: str
    uuid: str | None = None
    threads: int = 1
    memory_bytes: int = 0
    l2_bytes: int = 0
    capability: str | None = None
    """Compute capability of a GPU, such as 9.0. What follows is 0 where it is not known, and on a CPU."""
    sms: int = 0
    sm_mhz: float = 0.0
    """The highest clock of the SMs."""
    memory_mhz: float = 0.0
    bus_bits: int = 0
