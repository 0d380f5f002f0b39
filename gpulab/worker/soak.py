"""One variant by itself, for long enough that counters at a few hertz can be told to be its own."""

from __future__ import annotations

from statistics import median
from time import monotonic

from gpulab.model.events import Soaked
from gpulab.worker.channel import Channel
from gpulab.worker.clock import Clock
from gpulab.worker.contender import Contender

_SOAK_S, _SOAK_BLOCK_S = 2.0, 0.02


def soak(clock: Clock, channel: Channel, contender: Contender, time_s: float) -> Soaked:
    """The contender's blocks back to back, for two seconds and at least two blocks; no longer than the run may take."""
    build = contender.build
    assert build is not None
    taken_s = clock.block(build, contender.steps).time_s
    # In pieces of some milliseconds: the state is put back before each, and an untimed step comes first.
    steps = 1 if clock.flush else max(1, min(int(_SOAK_BLOCK_S / max(taken_s, 1e-9)), 1 << 20))
    times: list[float] = []
    started = monotonic()
    while len(times) < 2 or monotonic() - started < min(_SOAK_S, time_s):
        times.append(clock.block(build, steps).time_s)
        channel.pump()
    done = len(times) * (steps + 1)
    restored = 2 * build.state_bytes * len(times)
    return Soaked(
        variant=contender.name,
        started=started,
        ended=monotonic(),
        steps=done,
        time_s=median(times),
        restored_bytes=restored,
    )
