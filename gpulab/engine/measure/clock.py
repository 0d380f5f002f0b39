"""The wall clock: blocks of back-to-back steps of a build, from restored state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple

from gpulab.engine.build.build import Build
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.step_clock import (
    THERE,
    Block,
    call_each,
    is_asynchronous,
    know_torch,
    paced,
    timed,
    wait_for,
)

know_torch()


def returns_later(build: Build) -> bool:
    """Return whether a step returns what has to be waited for: torch's events see nothing of the
    work of other libraries.
    """
    with build.context():
        returned = build.work.step()
    later = is_asynchronous(returned)
    wait_for(returned)
    return later


_MOST_STEPS = 1 << 24


class Interruption(NamedTuple):
    """Something that is done between two steps of a block: a step cannot notice it.

    `restores`: the state is put back, on all ranks where there are several.
    """

    after: int
    act: Callable[[], None]
    restores: bool = False


class WallClock:
    """Times blocks on the host, with the device idle before and after; launch cost is inside.

    `flush`, where caches must be cold, empties them: a block then is one step.
    """

    name = "wall"

    def __init__(
        self, wait: Callable[[], None] | None, flush: Callable[[], None] | None = None
    ) -> None:
        self.wait = wait or _nothing
        self.waits = wait is not None
        """Whether there is a device to wait for."""
        self.flush = flush
        self.before_block: Callable[[], object] = _nothing
        """Called once the untimed steps are over: where ranks begin at once."""
        self.returned: object = None
        """What the last step of the last block returned, until `forget`."""
        self.empty_block_s = median(self.empty_s() for _ in range(200))
        # a device's includes microseconds of waiting, a CPU's the refilling of caches that others
        # took; and an empty block is less than 2 % of one
        self.block_s = max(2e-3, 50 * self.empty_block_s)

    def empty_s(self) -> float:
        """Measure the seconds that a block of no steps takes."""
        return self._run(repeat(_nothing, 0), 0).time_s

    def block(
        self,
        build: Build,
        steps: int,
        *,
        lead_in: int = 1,
        restore: bool = True,
        interruption: Interruption | None = None,
    ) -> Block:
        """Restore, untimed steps that bring caches back, then `steps` timed ones."""
        self.returned = None
        if restore:
            build.restore()
        mark_step()
        step = build.work.step
        with build.context():
            if lead_in:
                returned = call_each(repeat(step, lead_in))
                if type(returned) not in THERE:
                    step = paced(step, returned)
                del returned
            if self.flush:
                self.flush()
            self.before_block()
            return self._run(calls_of(step, steps, interruption), steps)

    def single_s(self, build: Build) -> float:
        """Seconds of one step, as it comes."""
        mark_step()
        return self._run(repeat(build.work.step, 1), 1).time_s

    def forget(self) -> None:
        self.returned = None

    def step_s(self, build: Build, steps: int) -> float:
        """Seconds per step of blocks of so many, as of now."""
        return median(self.block(build, steps).time_s for _ in range(3))

    def naive_step_s(self, build: Build, steps: int, lead_in: int) -> tuple[float, float]:
        """Seconds per step, as they are often mistimed: until the calls have returned, and with a
        wait after every step.
        """
        build.restore()
        step = build.work.step
        wait = self.wait
        with build.context():
            for _ in repeat(None, max(1, lead_in)):
                step()
            wait()
            started = perf_counter_ns()
            for _ in repeat(None, steps):
                step()
            returned = perf_counter_ns() - started
            wait()
            started = perf_counter_ns()
            for _ in repeat(None, steps):
                wait_for(step())
                wait()
            waited = perf_counter_ns() - started
        return returned * 1e-9 / steps, waited * 1e-9 / steps

    def _run(self, calls: Iterable[Callable[[], object]], steps: int) -> Block:
        block, self.returned = timed(calls, steps, self.wait)
        return block

    def steps_per_block(self, build: Build) -> tuple[int, float]:
        """(steps that fill a block, seconds per step): a block grows until it is long enough."""
        if self.flush:
            return 1, median(self.block(build, 1).time_s for _ in range(3))
        steps = 1
        while True:
            block = self.block(build, steps)
            step_s = block.time_s
            if step_s * steps < 100 * self.block_s:  # a short one may have been disturbed
                step_s = median([step_s, *(self.block(build, steps).time_s for _ in range(2))])
            if step_s * steps >= self.block_s or steps >= _MOST_STEPS or block.steps < steps:
                return block.steps, step_s
            # A margin, since the next blocks may run faster than this one.
            target = int(1.2 * self.block_s / max(step_s, 1e-9)) + 1
            steps = min(max(target, steps + 1), 10 * steps, _MOST_STEPS)


def calls_of(
    step: Callable[[], object], steps: int, interruption: Interruption | None
) -> Iterable[Callable[[], object]]:
    """The step so many times, with what happens between two of them."""
    if interruption is None:
        return repeat(step, steps)
    first = interruption.after
    interrupted = _after(interruption.act, step)
    return chain(repeat(step, first), interrupted, repeat(step, steps - first - 1))


def _after(
    happens: Callable[[], None], step: Callable[[], object]
) -> Iterator[Callable[[], object]]:
    happens()
    yield step


def _nothing() -> None:
    pass
