"""One build of one variant: its Work, its state as it was built, and its teardown."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from inspect import isgenerator, signature
from itertools import repeat
from time import perf_counter
from typing import Any, NamedTuple

import torch

from gpulab.core.findings import Declaration
from gpulab.engine.build import settings
from gpulab.engine.build.compiled import mark_step, try_in_threads
from gpulab.engine.build.lab import PhaseTimes, WorkerLab
from gpulab.engine.build.tensors import copies, live_leaves, number_dtype, put_back
from gpulab.engine.findings import left_by_context, set_while_building, set_while_stepping
from gpulab.engine.plain_functions import seed_everything
from gpulab.engine.processes.failure import RefusedError
from gpulab.engine.step_clock import call_each
from gpulab.proc.nvtx_ranges import PREFIX, STEP, Ranges, ranges
from gpulab.scenario import Param, ScenarioError, Variant, Work


class StepAndOutput(NamedTuple):
    """The return value of a step, and the output that a function read within it."""

    returned: Any
    output: Any


class OwnReading(NamedTuple):
    """A function of the lab's own that reads the output: called outside of the clock."""

    read: Callable[[], Any]


def _read_in_step(work: Work) -> Work:
    """A function for the output is part of the step: what it computes is timed."""
    read = work.output
    if not callable(read) or hasattr(read, "__dlpack__"):
        return work
    step = work.step

    def step_and_read() -> StepAndOutput:
        return StepAndOutput(step(), read())

    return replace(work, step=step_and_read, output=None)


def _step_in_range(step: Callable[[], Any], of: Ranges) -> Callable[[], Any]:
    def ranged() -> Any:
        with of.within(STEP):
            return step()

    return ranged


class Build:
    """A built variant. `close` runs what follows its `yield`, and drops all of its tensors."""

    def __init__(
        self, work: Work, seconds: float, teardown: Iterator[Any] | None, variant: str = ""
    ) -> None:
        self.work = _read_in_step(work)
        self._ranges = ranges()
        if self._ranges is not None:
            self.work = replace(self.work, step=_step_in_range(self.work.step, self._ranges))
        self.variant = variant
        """The name of what was built."""
        self.build_s = seconds
        self._teardown = teardown
        self.state = live_leaves("state", work.state)
        self._saved = copies(self.state)

    @cached_property
    def number_dtype(self) -> torch.dtype:
        """Return the dtype that Python floats count as where a step returns them."""
        return number_dtype(self.work.inputs)

    def output(self, returned: Any) -> Any:
        """Return the values that a step computed, by what it returned."""
        if isinstance(self.work.output, OwnReading):
            return self.work.output.read()
        if self.work.output is not None:
            return self.work.output
        return returned.output if isinstance(returned, StepAndOutput) else returned

    @property
    def state_bytes(self) -> int:
        """Return the state that each restore reads, and writes again."""
        return sum(tensor.nbytes for tensor in self._saved)

    def adopt(self) -> None:
        """Take in state that the first step made, as optimizers do: what is restored is then the
        state after it.
        """
        state = live_leaves("state", self.work.state)
        if len(state) != len(self.state):
            self.state = state
            self._saved = copies(state)

    def restore(self) -> None:
        """Put the state back in place, so that every block does the same work."""
        if self._saved:
            put_back(self.state, self._saved)

    def context(self) -> AbstractContextManager[Any]:
        """What its steps run in: what the scenario declares, in a range for a profiler."""
        if self._ranges is None:
            return self._own_context()
        return self._context_in_range(self._ranges)

    @contextmanager
    def _context_in_range(self, of: Ranges) -> Iterator[Any]:
        with of.within(f"{PREFIX}{self.variant}"), self._own_context() as entered:
            yield entered

    def _own_context(self) -> AbstractContextManager[Any]:
        context = self.work.context
        if context is None:
            return nullcontext()
        manager = (
            context() if isinstance(context, type) or not hasattr(context, "__enter__") else context
        )
        return manager  # type: ignore[no-any-return]

    def close(self) -> None:
        teardown = self._teardown
        self._teardown = None
        self.state = []
        self._saved = []
        self.work = Work(lambda: None)
        if teardown is not None and next(teardown, None) is not None:
            raise ScenarioError("the variant yields a second Work: a build makes one")


class Builder:
    """Builds variants alike: same seed, same parameters, no leftovers in the process's settings."""

    def __init__(
        self, lab: WorkerLab, params: dict[str, Param], seed: int, wait: Callable[[], None] | None
    ) -> None:
        self.lab = lab
        self._params = params
        self.data_seed = lab.data_seed = seed
        """Of every build."""
        self._wait = wait
        # a mask that a build draws is not the one that a step has to draw
        self._step_seed = seed + 500_009
        self._sizes = random.Random(seed + 1)
        self._padding: list[torch.Tensor] = []

    @property
    def device(self) -> torch.device:
        return self.lab.device

    def build(
        self,
        variant: Variant,
        *,
        other_seed: int | None = None,
        params: Mapping[str, Param] | None = None,
    ) -> Build:
        """Build once, with the data of this process, or of another seed, and the run's parameters,
        or others.

        RefusedError where the build changes a global setting; whatever the scenario raises passes.
        """
        assert variant.function is not None
        parameters = signature(variant.function).parameters
        given = {**self._params, **(params or {})}
        arguments = {name: value for name, value in given.items() if name in parameters}
        try_in_threads()
        before = settings.read()
        self._seed_with(self.data_seed if other_seed is None else other_seed)
        self.lab.has_tuned = False
        self.lab.building = variant.name
        started = perf_counter()
        tuned_s = self.lab.tuning_s
        try:
            returned = variant.function(self.lab, **arguments)
            teardown: Iterator[Any] | None = returned if isgenerator(returned) else None
            work = next(teardown, None) if teardown is not None else returned
            self.wait()
        finally:
            self.lab.building = None
            changed = settings.put_back(before)
        seconds = perf_counter() - started - (self.lab.tuning_s - tuned_s)
        _refuse(changed, set_while_building)
        if not isinstance(work, Work):
            raise ScenarioError(
                f"the variant returned {type(work).__name__}: return Work(step, ...)"
            )
        return Build(work, seconds, teardown, variant.name)

    def first_step(self, build: Build) -> float:
        """Take the first step of a build and adopt the state it makes. Returns its seconds."""
        _, seconds = self.step(build)
        build.adopt()
        return seconds

    def step(self, build: Build, within: Callable[[], object] | None = None) -> tuple[Any, float]:
        """One step, seeded: what it returns, and its seconds. RefusedError where it changes a
        global setting.

        `within` is called just before the step, once its context is entered.
        """
        self.seed()
        mark_step()
        before = settings.read()
        try:
            with build.context():
                inside = settings.read()
                if within is not None:
                    within()
                started = perf_counter()
                returned = call_each((build.work.step,))
                self.wait()
                seconds = perf_counter() - started
                _refuse(settings.put_back(inside), set_while_stepping)
        finally:
            remaining = settings.put_back(before)
        _refuse(remaining, left_by_context)
        return returned, seconds

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self._wait:
            self._wait()

    def seed(self) -> None:
        """Seed what a step may draw from, as before each checked step: never as for a build."""
        self._seed_with(self._step_seed)

    def _seed_with(self, seed: int) -> None:
        seed_everything(seed)
        self.lab.generator.manual_seed(seed)

    def phase_times(self, build: Build, steps: int) -> PhaseTimes:
        """A window of steps with phases on: seconds of each."""
        step = build.work.step
        build.restore()

        def run() -> None:
            call_each(repeat(step, steps))

        with build.context():
            step()
            self.wait()
            return self.lab.phases.record(run)

    def pad(self) -> None:
        """Keep a random amount of memory, so that the next build lands at another address."""
        size = self._sizes.randrange(64, 16 << 20, 64)
        self._padding.append(torch.empty(size, dtype=torch.uint8, device=self.device))

    def free_padding(self) -> None:
        self._padding.clear()


class Generators:
    """The state of every random generator that a build may draw from."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._device = builder.device
        self._host = torch.random.get_rng_state()
        self._python = random.getstate()
        self._lab = builder.lab.generator.get_state()
        self._on_device = (
            torch.cuda.get_rng_state(self._device) if self._device.type == "cuda" else None
        )
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Generators) and self._states() == other._states()

    __hash__ = None  # type: ignore[assignment]

    def _states(self) -> tuple[object, ...]:
        on_device = None if self._on_device is None else bytes(self._on_device.numpy())
        states = bytes(self._host.numpy()), bytes(self._lab.numpy()), on_device
        return *states, self._python, repr(self._numpy)

    def put_back(self) -> None:
        torch.random.set_rng_state(self._host)
        random.setstate(self._python)
        self._builder.lab.generator.set_state(self._lab)
        if self._on_device is not None:
            torch.cuda.set_rng_state(self._on_device, self._device)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


def have_moved(builder: Builder) -> bool:
    """Return whether anything was drawn since the generators were seeded for a step."""
    now = Generators(builder)
    builder.seed()
    return now != Generators(builder)


def _refuse(settings_changed: list[str], found: Declaration[...]) -> None:
    if settings_changed:
        raise RefusedError(found.from_values({"settings": settings_changed}))
