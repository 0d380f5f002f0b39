"""Stretches of steps that the session times as well, by its own clock: a clock that was tampered with disagrees."""

from __future__ import annotations

from time import perf_counter

from gpulab.protocol.events import TimerBracket
from gpulab.worker.building.build import Build
from gpulab.worker.building.compiled import mark_step
from gpulab.worker.context import WorkerContext
from gpulab.worker.process.channel import Channel
from gpulab.worker.process.sample_buffer import Block
from gpulab.worker.timing.candidate import Candidate
from gpulab.worker.timing.clock import WallClock

_STRETCHES, _STRETCH_S, _PIECE_S = 3, 0.12, 0.02
"""Three, since the session may be late at the end of one; in pieces, between which the state is restored."""
LONG_STEP_S = 1.0
"""Blocks of such steps are stretches of their own: see `long_block`."""


def bracket(context: WorkerContext, candidate: Candidate) -> None:
    """Some stretches of blocks of one candidate, none where its every block is one."""
    build = candidate.build
    assert build is not None
    if candidate.step_s >= LONG_STEP_S:
        return
    channel = context.reporter.channel
    pieces = max(1, round(_STRETCH_S / max(_PIECE_S, candidate.step_s)))
    steps = max(1, int(_PIECE_S / max(candidate.step_s, 1e-9)))
    build.restore()
    mark_step()
    with build.context():
        build.work.step()
        for number in range(_STRETCHES):
            _begin(channel, candidate, number)
            claimed_s = 0.0
            for piece in range(pieces):
                claimed_s += _timed_restore(build) if piece else 0.0
                block = context.wall_clock.again(build, steps)
                claimed_s += block.time_s * block.steps
            _end(channel, candidate, number, claimed_s)


def long_block(context: WorkerContext, clock: WallClock, candidate: Candidate, number: int) -> Block:
    """A block of rounds whose steps are so long that the session can time it as it is."""
    build, channel = candidate.build, context.reporter.channel
    assert build is not None
    _begin(channel, candidate, number)
    block = clock.block(build, candidate.steps, lead_in=candidate.lead_in)
    _end(channel, candidate, number, block.time_s * block.steps)
    return block


def _timed_restore(build: Build) -> float:
    started = perf_counter()
    build.restore()
    return perf_counter() - started


def _begin(channel: Channel, candidate: Candidate, number: int) -> None:
    channel.flush()  # so that the session reads nothing else first
    channel.emit(TimerBracket(variant=candidate.variant.name, number=number))
    channel.flush()


def _end(channel: Channel, candidate: Candidate, number: int, claimed_s: float) -> None:
    channel.emit(TimerBracket(variant=candidate.variant.name, number=number, claimed_s=claimed_s))
    channel.flush()
