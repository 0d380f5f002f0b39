"""The baseline's outputs in one epoch: what others are held to."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch

from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.building.compiled import mark_step
from gpulab.worker.checking import changes, outputs
from gpulab.worker.checking.changes import Change
from gpulab.worker.checking.matching import identity
from gpulab.worker.process.failure import is_out_of_memory
from gpulab.worker.timing.waiting import wait_for

Tensors = list[torch.Tensor]


@dataclass
class Result:
    """What some steps on changed inputs left."""

    output: Tensors
    before: Tensors
    after: Tensors


class References:
    """The baseline's outputs in one epoch, for inputs as they are and for each change that is asked for."""

    def __init__(
        self,
        builder: Builder,
        name: str,
        build: Build,
        draw: random.Random,
        usual: Tensors,
        begins: Callable[[str], None],
    ) -> None:
        """`begins` is told the name before its steps run."""
        self.build, self.name, self._begins = build, name, begins
        self.inputs = tensors.live_leaves("inputs", build.work.inputs)
        self._builder, self._draw = builder, draw
        self.draws = True
        """Whether its steps draw from the generators of the process; until one has shown that they do not."""
        self._results: dict[tuple[Change | None, int], Result | None] = {}
        if usual and not build.state:
            self._results[None, 1] = Result(usual, [], [])
        self._changes: list[Change] | None = None

    def changes(self) -> list[Change]:
        """In the order to try them: of one late element or of everything first, drawn once an epoch."""
        if self._changes is None:
            late = changes.late_element(self.inputs, self._draw)
            all_values = changes.everything(self._draw) if self.inputs else []
            self._changes = [*late, *all_values] if self._draw.random() < 0.5 else [*all_values, *late]
        return self._changes

    def usual(self, steps: int) -> Result:
        """What so many steps leave on inputs as they are."""
        return self._result(None, steps) or Result([], [], [])

    def changed(self, change: Change, steps: int) -> Result | None:
        """On changed inputs; None where those are not valid."""
        try:
            return self._result(change, steps)
        except (RuntimeError, ValueError, IndexError) as error:
            if is_out_of_memory(error):
                raise
            self._results[change, steps] = None
            return None

    def _result(self, change: Change | None, steps: int) -> Result | None:
        if (change, steps) not in self._results:
            result = self._run(change, steps)
            self._results[change, steps] = result if tensors.finite(result.output) else None
        return self._results[change, steps]

    def _run(self, change: Change | None, steps: int) -> Result:
        build, builder = self.build, self._builder
        self._begins(self.name)
        build.restore()
        before = tensors.kept(build.state)
        undo = change.made(self.inputs, identity(self.inputs)) if change else None
        try:
            builder.seed()
            builder.wait()
            mark_step()
            drawn = _generators()
            with build.context():
                for _ in range(steps):
                    returned = build.work.step()
                    wait_for(returned)
                builder.wait()
            self.draws = drawn != _generators()
            output = tensors.kept(outputs.read(build, returned))
            return Result(output, before, tensors.kept(build.state))
        finally:
            builder.wait()
            if undo:
                undo()
            build.restore()
            builder.wait()


def _generators() -> tuple[bytes, bytes]:
    """What the global generators of torch will draw next."""
    on_gpu = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    return bytes(torch.get_rng_state().numpy()), b"" if on_gpu is None else bytes(on_gpu.numpy())
