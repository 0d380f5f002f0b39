"""The wall clock: one timed block of back-to-back steps, and the wait for what a step returns.

A device is waited for as a whole. Other things that a step returns are waited for one by one: JAX
arrays, futures, and objects with `__dlpack__`, which may compute only when asked for their values.
"""

from __future__ import annotations

import resource
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from statistics import median
from time import monotonic, perf_counter_ns, thread_time_ns
from typing import NamedTuple

import torch

from gpulab.engine.build.build import Build, call_each
from gpulab.engine.build.compiled import mark_step
from gpulab.engine.build.walk import value_later
from gpulab.engine.processes.channel import Block

THERE = frozenset(
    {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, type(None), bool, int, float, str, bytes}
)
"""Types that are complete once a device is idle; subclasses may compute later."""
_ARRAYS = ("numpy", "cupy", "jax", "jaxlib", "torch")
"""Packages whose arrays compute nothing when their memory is handed over."""
_MOST_RUNNING = 8
"""Results that are not waited for yet: enough to hide what it takes to start the next."""


def wait_for(result: object) -> None:
    """Return once all that a step returned is there."""
    if type(result) not in THERE:
        for wait in _ways(result):
            wait()


def is_asynchronous(result: object) -> bool:
    """Whether something in what a step returned has to be waited for."""
    return type(result) not in THERE and any(True for _ in _ways(result))


def returns_later(build: Build) -> bool:
    """Whether a step returns what has to be waited for: torch's events see nothing of the work of
    other libraries.
    """
    with build.context():
        returned = build.work.step()
    later = is_asynchronous(returned)
    wait_for(returned)
    return later


def paced(step: Callable[[], object], returned: object) -> Callable[[], object]:
    """The step itself where its result was complete; else one that waits for the result of some
    steps ago, and returns all that are still running. `returned`: what the step returned last.
    """
    if not is_asynchronous(returned):
        return step
    wait_for(returned)
    running: deque[object] = deque()

    def paced_step() -> deque[object]:
        running.append(step())
        if len(running) > _MOST_RUNNING:
            wait_for(running.popleft())
        return running

    return paced_step


def _ways(result: object) -> Iterator[Callable[[], object]]:
    """What waits for each part of a result."""
    kind = type(result)
    if kind in THERE:
        return
    if isinstance(result, (list, tuple, deque)):
        for part in result:
            yield from _ways(part)
    elif isinstance(result, Mapping):
        for part in result.values():
            yield from _ways(part)
    elif value := value_later(result):
        yield lambda: wait_for(value())
    else:
        # arrays of JAX; tensors of torch's collectives
        for name in ("block_until_ready", "trigger_wait"):
            if callable(method := getattr(kind, name, None)):
                yield lambda method=method: method(result)  # type: ignore[misc]
        if kind.__module__.partition(".")[0] not in _ARRAYS and hasattr(kind, "__dlpack__"):
            yield lambda: result.__dlpack__()  # type: ignore[attr-defined]


_BLOCK_S = 2e-3
"""At least: a device's block includes microseconds of waiting, a CPU's the refilling of caches that
other variants took.
"""
_EMPTY_BLOCKS = 50  # so that an empty block is less than 2 % of one
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

    __slots__ = ("block_s", "empty_block_s", "flush", "returned", "wait", "waits")
    name = "wall"

    def __init__(
        self, wait: Callable[[], None] | None, flush: Callable[[], None] | None = None
    ) -> None:
        self.wait = wait or _nothing
        self.waits = wait is not None
        """Whether there is a device to wait for."""
        self.flush = flush
        self.returned: object = None
        """What the last step of the last block returned, until `forget`."""
        self.empty_block_s = median(self.empty_s() for _ in range(200))
        self.block_s = max(_BLOCK_S, _EMPTY_BLOCKS * self.empty_block_s)

    def empty_s(self) -> float:
        """What a block of no steps takes."""
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
        """Restore, untimed steps that bring the caches back, then `steps` timed ones; cold ones one
        by one.
        """
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
            return self._run(calls_of(step, steps, interruption), steps)

    def single_s(self, build: Build) -> float:
        """Seconds of one step, as it comes."""
        mark_step()
        return self._run(repeat(build.work.step, 1), 1).time_s

    def forget(self) -> None:
        """Let go of what the last step returned."""
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
        wait = self.wait
        wait()
        before = resource.getrusage(resource.RUSAGE_THREAD)
        cpu = thread_time_ns()
        started = perf_counter_ns()
        returned = call_each(calls)
        if type(returned) not in THERE:
            wait_for(returned)
        wait()
        ended = perf_counter_ns()
        cpu = thread_time_ns() - cpu
        after = resource.getrusage(resource.RUSAGE_THREAD)
        self.returned = returned[-1] if isinstance(returned, deque) else returned
        share = 1e-9 / (steps or 1)
        return Block(
            (ended - started) * share,
            cpu * share,
            after.ru_minflt - before.ru_minflt,
            after.ru_nivcsw - before.ru_nivcsw,
            monotonic(),
            steps,
        )

    def steps_per_block(self, build: Build) -> tuple[int, float]:
        """(steps that fill a block, seconds per step), by growing a block until it is long
        enough.
        """
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
