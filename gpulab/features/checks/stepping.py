"""Steps that are checked: their output is compared with the baseline's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from gpulab.engine.build import agreement, tensors
from gpulab.engine.build.build import Build, Builder
from gpulab.engine.measure.outputs import read, step
from gpulab.engine.processes.failure import WrongOutputError, is_out_of_memory
from gpulab.engine.step_clock import is_asynchronous
from gpulab.features.checks.values import distance, exchange
from gpulab.scenario import Variant

Tensors = list[torch.Tensor]
T = TypeVar("T")

_FAILS = (RuntimeError, ValueError, IndexError)
"""What a step may raise on values that no author drew."""


def unless_it_fails(make: Callable[[], T]) -> T | None:
    """Return what is made; None where a step fails on these values. Out of memory is raised."""
    try:
        return make()
    except _FAILS as error:
        if is_out_of_memory(error):
            raise
        return None


def lie_in_state(build: Build, inputs: Sequence[torch.Tensor]) -> bool:
    """Return whether an input is in memory of the state: what is written there is restored."""
    state = _spans(build.state)
    return any(
        begin < state_end and state_begin < end
        for begin, end in _spans(inputs)
        for state_begin, state_end in state
    )


def _spans(parts: Sequence[torch.Tensor]) -> set[tuple[int, int]]:
    """Addresses of their memory: of a view of an array, they begin at its first element."""
    storages = [tensor.untyped_storage() for tensor in parts if tensor.numel()]
    return {(storage.data_ptr(), storage.data_ptr() + storage.nbytes()) for storage in storages}


class Stepping:
    """Takes the checked steps of one process. `dtype` is what the `baseline` declares."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.baseline: str | None = None
        self.dtype: str | None = None
        self.baseline_has_state = False
        self.widened: dict[str, float] = {}
        """By variant the error that is allowed where it was judged against float64."""
        self.sizes: agreement.Sizes = {}
        self.asynchronous = False
        """Whether the step before returned what had to be waited for."""

    def values_of(self, variant: Variant, seed: int) -> Tensors:
        """Copies of the inputs that a build has with another seed."""
        other = self.builder.build(variant, other_seed=self.builder.data_seed + seed)
        try:
            return tensors.kept(tensors.live_leaves("inputs", other.work.inputs))
        finally:
            other.close()

    def dtypes(self, build: Build) -> tuple[str | None, str | None]:
        """Return what the build and the baseline declare."""
        return build.work.dtype, self.dtype

    def agree(self, build: Build, output: Tensors, reference: Tensors) -> agreement.Agreement:
        """By the tolerance of a build, and of both dtypes that are declared. `reference` is of the
        baseline's output.
        """
        agreement.learn(self.sizes, reference)
        return agreement.agree(
            output,
            reference,
            tolerance=build.work.tolerance,
            dtypes=self.dtypes(build),
            widened=self.widened.get(build.variant, 0.0),
            sizes=self.sizes,
        )

    def require(self, build: Build, output: Tensors, reference: Tensors) -> agreement.Agreement:
        """The same. WrongOutputError where they do not agree."""
        agreed = self.agree(build, output, reference)
        if reason := agreement.located(agreed, output, reference):
            raise WrongOutputError(reason, agreed.error)
        return agreed

    def step(self, build: Build, *, restored: bool = True) -> Tensors:
        """One step, from restored state or the state as it is; returns the live output tensors."""
        returned = step(self.builder, build, restored=restored)
        self.asynchronous = is_asynchronous(returned)
        live = read(build, returned)
        self.builder.wait()
        return live

    def output(self, build: Build, values: Tensors, inputs: Tensors) -> Tensors:
        """Copies of the output of a step on other values of inputs, which are put back after it."""
        write, undo = exchange(inputs, values)

        def write_again() -> None:
            write()
            self.builder.wait()

        try:
            write()
            self.builder.wait()
            within = write_again if lie_in_state(build, inputs) else None
            returned = step(self.builder, build, within)
            return tensors.kept(read(build, returned))
        finally:
            undo()
            self.builder.wait()


def warm_checks(device: torch.device) -> None:
    """Load a GPU's kernels for checks while another process has its turn: milliseconds each."""
    for dtype in (torch.float32, torch.bfloat16):
        live = [torch.rand(4096, device=device).to(dtype)]
        saved = tensors.kept(live)
        agreement.agree(live, saved)
        agreement.agree([live[0] * 2], saved)
        tensors.finite(live)
        tensors.changed(live, saved)
        distance(live, saved)
        write, undo = exchange(live, saved)
        write()
        undo()
        tensors.poison(saved)
    torch.randn(4096, device=device)
    torch.cuda.synchronize(device)
