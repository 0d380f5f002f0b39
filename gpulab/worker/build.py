"""One build of one variant: its Work, its state as it was built, and its teardown."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from inspect import isgenerator, signature
from time import perf_counter
from typing import Any

import torch

from gpulab.model.scenario import Param, ScenarioError, Variant, Work
from gpulab.worker import settings
from gpulab.worker.compiled import mark_step
from gpulab.worker.device import seed_everything
from gpulab.worker.lab import WorkerLab
from gpulab.worker.marks import Taken
from gpulab.worker.tensors import copies, live_leaves, put_back

_MOST_PADDING = 16 << 20


class RefusedError(Exception):
    """The variant breaks the rules of a fair comparison."""


class Build:
    """A built variant. `close` runs what follows its `yield` and drops every reference to its tensors."""

    def __init__(self, work: Work, seconds: float, teardown: Iterator[Any] | None) -> None:
        self.work = work
        self.build_s = seconds
        self._teardown = teardown
        self._state = live_leaves("state", work.state)
        self._saved = copies(self._state)

    @property
    def state(self) -> list[torch.Tensor]:
        return self._state

    @property
    def state_bytes(self) -> int:
        """What each putting back reads, and writes again."""
        return sum(one.nbytes for one in self._saved)

    def adopt(self) -> None:
        """Take in state that the first step made, as optimizers do: what is put back is then the state after it."""
        found = live_leaves("state", self.work.state)
        if len(found) != len(self._state):
            self._state, self._saved = found, copies(found)

    def restore(self) -> None:
        """Put the state back in place, so that every block does the same work."""
        if self._saved:
            put_back(self._state, self._saved)

    def context(self) -> AbstractContextManager[Any]:
        context = self.work.context
        if context is None:
            return nullcontext()
        made = context() if isinstance(context, type) or not hasattr(context, "__enter__") else context
        return made  # type: ignore[no-any-return]

    def close(self) -> None:
        teardown, self._teardown = self._teardown, None
        self._state, self._saved = [], []
        self.work = Work(lambda: None)
        if teardown is not None and next(teardown, None) is not None:
            raise ScenarioError("the variant yields a second Work: one build makes one")


class Builder:
    """Builds variants alike: same seed, same parameters, no leftovers in the process's settings."""

    def __init__(self, lab: WorkerLab, params: dict[str, Param], seed: int, wait: Callable[[], None] | None) -> None:
        self._lab, self._params, self._seed, self._wait = lab, params, seed, wait
        self._shuffle = random.Random(seed + 1)
        self._padding: list[torch.Tensor] = []

    @property
    def device(self) -> torch.device:
        return self._lab.device

    def build(self, variant: Variant) -> Build:
        """Build once. RefusedError where the build changes a global setting; whatever the scenario raises passes."""
        assert variant.function is not None
        given = {name: value for name, value in self._params.items() if name in signature(variant.function).parameters}
        before = settings.read()
        self._seed_all()
        started = perf_counter()
        try:
            made = variant.function(self._lab, **given)
            teardown: Iterator[Any] | None = made if isgenerator(made) else None
            work = next(teardown, None) if teardown is not None else made
            if self._wait:
                self._wait()
        finally:
            changed = settings.put_back(before)
        seconds = perf_counter() - started
        self._refuse(changed, "set while building: it belongs in Work(context=...)")
        if not isinstance(work, Work):
            raise ScenarioError(f"the variant returned {type(work).__name__}: return Work(step, ...)")
        return Build(work, seconds, teardown)

    def _refuse(self, changed: list[str], why: str) -> None:
        if changed:
            raise RefusedError(f"{' and '.join(changed)} {why}")

    def first_step(self, build: Build) -> float:
        """Take the first step of a build and adopt the state it makes. Returns its seconds."""
        _, seconds = self.step(build)
        build.adopt()
        return seconds

    def step(self, build: Build) -> tuple[Any, float]:
        """One step, seeded: what it returns, and its seconds. RefusedError where it changes a global setting."""
        self._seed_all()
        mark_step()
        before = settings.read()
        try:
            with build.context():
                inside = settings.read()
                started = perf_counter()
                returned = build.work.step()
                if self._wait:
                    self._wait()
                seconds = perf_counter() - started
                self._refuse(settings.put_back(inside), "set while stepping: it belongs in Work(context=...)")
        finally:
            left = settings.put_back(before)
        self._refuse(left, "not put back by the context of its Work")
        return returned, seconds

    def marks_of(self, build: Build, steps: int) -> Taken:
        """A window of steps with the lab's marks on: seconds of each."""
        step = build.work.step
        build.restore()

        def run() -> None:
            for _ in range(steps):
                step()

        with build.context():
            step()
            if self._wait:
                self._wait()
            self._lab.marks.window(run)
        return self._lab.marks.taken()

    def _seed_all(self) -> None:
        seed_everything(self._seed)

    def pad(self) -> None:
        """Keep a random amount of memory, so that the next build lands at another address."""
        size = self._shuffle.randrange(64, _MOST_PADDING, 64)
        self._padding.append(torch.empty(size, dtype=torch.uint8, device=self._lab.device))

    def free_padding(self) -> None:
        self._padding.clear()
