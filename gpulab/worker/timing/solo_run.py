"""One variant by itself, for long enough that counters at a few hertz can be attributed to it."""

from __future__ import annotations

from statistics import median
from time import monotonic

from gpulab.analysis.statistics import median_interval
from gpulab.protocol.events import SoloRun
from gpulab.worker.process.channel import Channel
from gpulab.worker.timing.candidate import Candidate
from gpulab.worker.timing.clock import WallClock

_SOLO_S, _BLOCK_S = 1.0, 0.02
_MOST_STEPS = 1 << 20


def solo_run(clock: WallClock, channel: Channel, candidate: Candidate, time_s: float) -> SoloRun:
    """The candidate's blocks back to back: so long that a GPU's counters are read several times, and two at least."""
    build = candidate.build
    assert build is not None
    step_s = clock.block(build, candidate.steps).time_s
    # In pieces of some milliseconds: the state is restored before each, and an untimed step comes first.
    steps = 1 if clock.flush else max(1, min(int(_BLOCK_S / max(step_s, 1e-9)), _MOST_STEPS))
    times: list[float] = []
    longest_s = min(_SOLO_S, time_s)
    started = monotonic()
    while len(times) < 2 or monotonic() - started < longest_s:
        times.append(clock.block(build, steps).time_s)
        channel.pump()
    interval = median_interval(times)
    return SoloRun(
        low_s=interval.low if interval else None,
        high_s=interval.high if interval else None,
        variant=candidate.name,
        started=started,
        ended=monotonic(),
        steps=len(times) * (steps + 1),
        time_s=median(times),
        restored_bytes=2 * build.state_bytes * len(times),
    )
