"""The time of a step while no other variant runs: blocks back to back."""

from __future__ import annotations

from statistics import median
from time import perf_counter

from gpulab.worker.building.build import Build
from gpulab.worker.timing.candidate import Candidate
from gpulab.worker.timing.clock import WallClock

_ALONE_S, _FEWEST, _LONG_BLOCK_S = 0.02, 3, 0.02


def step_alone_s(clock: WallClock, candidate: Candidate, build: Build) -> float:
    """Seconds per step, the median of some blocks; of a long one the block itself."""
    times: list[float] = []
    started = perf_counter()
    fewest = 1 if candidate.block_s > _LONG_BLOCK_S else _FEWEST
    while len(times) < fewest or perf_counter() - started < _ALONE_S:
        lead_in = 1 if times else candidate.lead_in
        times.append(clock.block(build, candidate.steps, lead_in=lead_in).time_s)
    return median(times)
