"""One build of one variant: its Work, its state as it was built, and its teardown."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from inspect import isgenerator, signature
from time import perf_counter
from typing import Any

import torch

from gpulab.protocol.finding import finding
from gpulab.scenario import Param, ScenarioError, Variant, Work
from gpulab.worker.building import settings
from gpulab.worker.building.compiled import mark_step
from gpulab.worker.building.lab import WorkerLab
from gpulab.worker.building.phases import PhaseTimes
from gpulab.worker.building.tensors import copies, live_leaves, put_back
from gpulab.worker.process.errors import RefusedError

_MOST_PADDING = 16 << 20


class Build:
    """A built variant. `close` runs what follows its `yield` and drops every reference to its tensors."""

    def __init__(self, work: Work, seconds: float, teardown: Iterator[Any] | None, variant: str = "") -> None:
        self.work = work
        self.variant = variant
        """The name of what was built."""
        self.build_s = seconds
        self._teardown = teardown
        self._state = live_leaves("state", work.state)
        self._saved = copies(self._state)

    @property
    def state(self) -> list[torch.Tensor]:
        return self._state

    @property
    def state_bytes(self) -> int:
        """What each restore reads, and writes again."""
        return sum(tensor.nbytes for tensor in self._saved)

    def adopt(self) -> None:
        """Take in state that the first step made, as optimizers do: what is restored is then the state after it."""
        state = live_leaves("state", self.work.state)
        if len(state) != len(self._state):
            self._state, self._saved = state, copies(state)

    def restore(self) -> None:
        """Put the state back in place, so that every block does the same work."""
        if self._saved:
            put_back(self._state, self._saved)

    def context(self) -> AbstractContextManager[Any]:
        context = self.work.context
        if context is None:
            return nullcontext()
        manager = context() if isinstance(context, type) or not hasattr(context, "__enter__") else context
        return manager  # type: ignore[no-any-return]

    def close(self) -> None:
        teardown, self._teardown = self._teardown, None
        self._state, self._saved = [], []
        self.work = Work(lambda: None)
        if teardown is not None and next(teardown, None) is not None:
            raise ScenarioError("the variant yields a second Work: a build makes one")


class Builder:
    """Builds variants alike: same seed, same parameters, no leftovers in the process's settings."""

    def __init__(self, lab: WorkerLab, params: dict[str, Param], seed: int, wait: Callable[[], None] | None) -> None:
        self.lab = lab
        self._params, self._seed, self._wait = params, seed, wait
        self._sizes = random.Random(seed + 1)
        self._padding: list[torch.Tensor] = []

    @property
    def device(self) -> torch.device:
        return self.lab.device

    @property
    def data_seed(self) -> int:
        """Of every build, and of every step that is checked."""
        return self._seed

    def build(self, variant: Variant) -> Build:
        """Build once. RefusedError where the build changes a global setting; whatever the scenario raises passes."""
        assert variant.function is not None
        parameters = signature(variant.function).parameters
        arguments = {name: value for name, value in self._params.items() if name in parameters}
        before = settings.read()
        seed_everything(self._seed)
        self.lab.has_tuned = False
        started, tuned_s = perf_counter(), self.lab.tuning_s
        try:
            returned = variant.function(self.lab, **arguments)
            teardown: Iterator[Any] | None = returned if isgenerator(returned) else None
            work = next(teardown, None) if teardown is not None else returned
            self.wait()
        finally:
            changed = settings.put_back(before)
        seconds = perf_counter() - started - (self.lab.tuning_s - tuned_s)
        _refuse(changed, "set_while_building")
        if not isinstance(work, Work):
            raise ScenarioError(f"the variant returned {type(work).__name__}: return Work(step, ...)")
        return Build(work, seconds, teardown, variant.name)

    def first_step(self, build: Build) -> float:
        """Take the first step of a build and adopt the state it makes. Returns its seconds."""
        _, seconds = self.step(build)
        build.adopt()
        return seconds

    def step(self, build: Build, within: Callable[[], object] | None = None) -> tuple[Any, float]:
        """One step, seeded: what it returns, and its seconds. RefusedError where it changes a global setting.

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
                returned = build.work.step()
                self.wait()
                seconds = perf_counter() - started
                _refuse(settings.put_back(inside), "set_while_stepping")
        finally:
            remaining = settings.put_back(before)
        _refuse(remaining, "left_by_context")
        return returned, seconds

    def wait(self) -> None:
        """Wait until the device is idle."""
        if self._wait:
            self._wait()

    def seed(self) -> None:
        """Seed every generator that a step may draw from, as before each checked step."""
        seed_everything(self._seed)

    def phase_times(self, build: Build, steps: int) -> PhaseTimes:
        """A window of steps with phases on: seconds of each."""
        step = build.work.step
        build.restore()

        def run() -> None:
            for _ in range(steps):
                step()

        with build.context():
            step()
            self.wait()
            return self.lab.phases.record(run)

    def pad(self) -> None:
        """Keep a random amount of memory, so that the next build lands at another address."""
        size = self._sizes.randrange(64, _MOST_PADDING, 64)
        self._padding.append(torch.empty(size, dtype=torch.uint8, device=self.device))

    def free_padding(self) -> None:
        self._padding.clear()


class Generators:
    """What the generators that a build may draw from are at, to go on from there again."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._host, self._python = torch.random.get_rng_state(), random.getstate()
        self._on_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        numpy = sys.modules.get("numpy")
        self._numpy = numpy.random.get_state() if numpy else None

    def put_back(self) -> None:
        torch.random.set_rng_state(self._host)
        random.setstate(self._python)
        if self._on_device is not None:
            torch.cuda.set_rng_state(self._on_device, self._device)
        if self._numpy is not None:
            sys.modules["numpy"].random.set_state(self._numpy)


def seed_everything(seed: int) -> None:
    """Seed every generator a build may draw from, so that all variants see the same data."""
    random.seed(seed)
    torch.manual_seed(seed)
    for name in ("numpy", "cupy"):
        if module := sys.modules.get(name):
            module.random.seed(seed % 2**32)


def _refuse(settings_changed: list[str], code: str) -> None:
    if settings_changed:
        raise RefusedError(finding(code, settings=settings_changed))
