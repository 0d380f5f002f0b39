"""New values in the inputs, between steps that nothing times: every variant's output follows as the baseline's does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from gpulab.protocol.finding import Finding, Value, finding
from gpulab.protocol.statuses import CheckKind
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.checking import changes, outputs, reading
from gpulab.worker.checking.changes import Change
from gpulab.worker.checking.matching import Matching
from gpulab.worker.process.errors import RefusedError, WrongOutputError

Tensors = list[torch.Tensor]
Agree = Callable[[Build, Tensors, Tensors], tensors.Agreement]
_ENOUGH = 2
"""Changes to keep: among them is one for inputs in another order."""


@dataclass(frozen=True)
class Inputs:
    """The live inputs of a build, what they were, and how they lie to the baseline's."""

    live: Tensors
    saved: Tensors
    matching: Matching


class OtherInputs:
    """Changes that the baseline's output follows, and its output then."""

    def __init__(self, builder: Builder, agree: Agree) -> None:
        self._builder, self._agree = builder, agree
        self._results: list[tuple[Change, Tensors]] = []

    def __len__(self) -> int:
        return len(self._results)

    @property
    def outputs(self) -> list[Tensors]:
        """The baseline's, for each change."""
        return [output for _, output in self._results]

    def find(self, build: Build, inputs: Inputs, usual: Tensors) -> None:
        """Try changes on the baseline."""
        for change in changes.everything(random.Random(self._builder.data_seed)) if inputs.live else ():
            try:
                output = self._output(build, change, inputs)
            except (RuntimeError, ValueError, IndexError):
                continue  # the values are no longer valid, as with a matrix that must be positive definite
            if tensors.finite(output) and not self._agree(build, output, usual).ok:
                self._results.append((change, output))
            if len(self._results) == _ENOUGH:
                return

    def check(self, build: Build, inputs: Inputs, usual: Tensors) -> None:
        """Compare a variant with the baseline on inputs changed alike: a stale result stays. WrongOutputError.

        RefusedError where it follows only what changed before its context was entered.
        """
        change, expected = self._chosen(inputs)
        if change is None:
            return
        if self._agree(build, self._output(build, change, inputs, inside=True), expected).ok:
            return
        output = self._output(build, change, inputs)
        agreement = self._agree(build, output, expected)
        if agreement.reason is None:
            raise RefusedError(finding("context_computes"), check=CheckKind.CONTEXT)
        if tensors.agree(output, usual, tolerance=0.0).ok:
            raise WrongOutputError(finding("ignores_its_inputs"), agreement.error, check=CheckKind.OUTPUTS)
        values: dict[str, Value] = {**agreement.reason.values, "other_inputs": True}
        reason = Finding(code=agreement.reason.code, values=values)
        raise WrongOutputError(reason, agreement.error, check=CheckKind.OUTPUTS)

    def check_reading(self, build: Build, inputs: Inputs) -> None:
        """RefusedError where an output that is read after a change of the inputs follows it without a step."""
        change, expected = self._chosen(inputs)
        if change is None:
            return
        with self._putting_back(inputs):
            late = reading.late(self._builder, build, self._making(change, inputs))
            if self._agree(build, late, expected).ok:
                raise RefusedError(finding("output_computes_when_read"), check=CheckKind.CONTEXT)

    def _chosen(self, inputs: Inputs) -> tuple[Change | None, Tensors]:
        """The first change that does to these inputs what it did to the baseline's, and the baseline's output then."""
        fitting = ((change, output) for change, output in self._results if change.fits(inputs.matching))
        return next(fitting, (None, []))

    def _output(self, build: Build, change: Change, inputs: Inputs, *, inside: bool = False) -> Tensors:
        """The output for changed inputs; `inside`: they change once the context is entered."""
        make = self._making(change, inputs)
        with self._putting_back(inputs):
            if not inside:
                make()
            returned, _ = outputs.step(self._builder, build, make if inside else None)
            return tensors.kept(outputs.read(build, returned))

    def _making(self, change: Change, inputs: Inputs) -> Callable[[], None]:
        def make() -> None:
            change.make(inputs.live, inputs.matching)
            self._builder.wait()

        return make

    @contextmanager
    def _putting_back(self, inputs: Inputs) -> Iterator[None]:
        try:
            yield
        finally:
            tensors.put_back(inputs.live, inputs.saved)
            self._builder.wait()
