"""Whether a variant's output follows other values of its inputs as the baseline's does.

A build with another seed is the author's own way to other values: what is sorted, or positive
definite, stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import partial

import torch

from gpulab.core.findings import Finding
from gpulab.core.statuses import CheckKind
from gpulab.engine.build import agreement, tensors
from gpulab.engine.build.agreement import Agreement
from gpulab.engine.build.build import Build
from gpulab.engine.processes.failure import (
    RefusedError,
    WrongOutputError,
    checking,
    is_out_of_memory,
)
from gpulab.features.checks import values
from gpulab.features.checks.findings import (
    ignores_its_inputs,
    input_without_effect,
    inputs_incomplete,
    inputs_not_from_the_seed,
    layout_made_in_build,
    output_ignores_change,
    seed_changes_nothing,
    seed_changes_shapes,
    wrong_in_case,
)
from gpulab.features.checks.stepping import Stepping, Tensors, lie_in_state, unless_it_fails
from gpulab.features.checks.values import OTHER, Own
from gpulab.scenario import Param, Variant

_SAMPLES = 256


def in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """A view whose last dimension is the innermost in memory."""
    return tensor.permute(sorted(range(tensor.dim()), key=lambda dim: -tensor.stride()[dim]))


def whole_memory(tensor: torch.Tensor) -> torch.Tensor:
    """All that lies in the memory of a view, as one row."""
    storage = tensor.untyped_storage()
    return tensor.new_empty(0).set_(storage, 0, (storage.nbytes() // tensor.element_size(),), (1,))


def sample_of(tensor: torch.Tensor) -> torch.Tensor:
    """Some of its values, in their order."""
    flat = tensors.computable(tensor.detach()).reshape(-1)
    step = max(1, flat.numel() // _SAMPLES)
    part = flat[::step].cpu()
    return part.abs().double() if part.is_complex() else part.double()


_OTHER_SEED = 700_001
"""Added to the seed of a process: that of the builds whose values are copied."""
_MOST_INPUTS = 8
"""That are changed one by one."""
_DIRECT = "another seed, by its own build"
Case = str | Mapping[str, Param]


class OtherValues:
    """Checks of one process with other values: the baseline's outputs for other values, to which
    the variants' are compared.

    `own` is what each variant gives, `note` is told what casts doubt on a variant, `passed` what
    was compared.
    """

    def __init__(
        self,
        stepping: Stepping,
        own: MutableMapping[str, Own],
        note: Callable[[CheckKind, Finding], None],
        passed: Callable[..., None],
        cases: Sequence[Case],
    ) -> None:
        self._stepping = stepping
        self._own = own
        self._doubt = partial(note, CheckKind.INPUTS)
        self._passed = passed
        self._cases: list[Case] = []
        for case in cases:
            self._cases += values.FREE if case == "free" else (case,)
        self.outputs: dict[str, Tensors] = {}
        """The baseline's, by what its values are."""
        self._bytes = 0
        self._shapes: list[torch.Size] = []
        self._items = 1.0
        self._samples: list[tuple[torch.Size, torch.Tensor]] = []
        """Of the baseline's inputs, and of the memory that each lies in: some of their values."""
        self._effective: set[int] = set()
        """The baseline's inputs that its output follows, each changed by itself."""

    def compare(
        self, variant: Variant, build: Build, inputs: Tensors, *, first_process: bool
    ) -> None:
        """Catches results that the build computed, and inputs that are decoys: copies the values of
        a build with another seed, and compares. WrongOutputError where the output stays.

        Values with which the baseline fails, or gives NaN, say nothing.
        """
        name = variant.name
        is_baseline = name == self._stepping.baseline
        required = not is_baseline and OTHER in self.outputs
        if not inputs:
            return
        other = self._build_again(variant, required=required)
        if other is None:
            return
        try:
            donated = tensors.kept(tensors.live_leaves("inputs", other.work.inputs))
            differ = values.differ(inputs, donated)
            if first_process:
                self._note_without_effect(
                    name, build, inputs, inputs if differ is None else donated
                )
            if differ is False and required:
                raise RefusedError(inputs_not_from_the_seed(), check=CheckKind.INPUTS)
            if not differ:
                unchanged = seed_changes_shapes if differ is None else seed_changes_nothing
                if first_process:
                    self._doubt(unchanged(name))
                return
            if is_baseline:
                self._refer(name, build, other, donated, inputs)
            elif required:
                self._follow(name, build, other, donated, inputs)
        finally:
            other.close()

    def _build_again(self, variant: Variant, *, required: bool) -> Build | None:
        """With another seed; None where that fails, and nothing is to be compared with it."""
        builder = self._stepping.builder
        try:
            return builder.build(variant, other_seed=builder.data_seed + _OTHER_SEED)
        except Exception as error:
            if required and not is_out_of_memory(error):
                raise
            return None

    def _refer(
        self, name: str, build: Build, other: Build, donated: Tensors, inputs: Tensors
    ) -> None:
        """The baseline's outputs for another seed: values copied, and by that seed's own build."""
        output = unless_it_fails(lambda: self._stepping.output(build, donated, inputs))
        direct = None if output is None else unless_it_fails(lambda: self._first_output(other))
        if output is None or direct is None or tensors.has_nan(output):
            return
        self.outputs[OTHER] = output
        self.outputs[_DIRECT] = direct
        agreement.learn(self._stepping.sizes, output)
        if not self._own[name].add(donated, output):
            self._doubt(output_ignores_change(name))

    def _first_output(self, build: Build) -> Tensors:
        self._stepping.builder.first_step(build)
        return tensors.kept(self._stepping.step(build))

    def _follow(
        self, name: str, build: Build, other: Build, donated: Tensors, inputs: Tensors
    ) -> None:
        """A variant's output for another seed's values is the baseline's. WrongOutputError."""
        with checking(CheckKind.OUTPUTS):
            output = self._stepping.output(build, donated, inputs)
            agreement = self._stepping.agree(build, output, self.outputs[OTHER])
            if agreement.ok:
                # a timed block restores state once the values are written
                if self._stepping.baseline_has_state or not lie_in_state(build, inputs):
                    self._own[name].add(donated, output)
                self._passed(name, CheckKind.INPUTS, inputs=len(inputs))
                return
            if place := self._ignored(build, donated, inputs):
                ignored = ignores_its_inputs(input=place, inputs=len(inputs))
                raise WrongOutputError(ignored, agreement.error)
            if self._stepping.agree(build, self._first_output(other), self.outputs[_DIRECT]).ok:
                # Its own build of these values is right: what it names is not all that it reads.
                incomplete = inputs_incomplete(name, error=agreement.error)
                self._doubt(incomplete)
                return
            assert agreement.reason is not None
            known = {**agreement.reason.values, "other_inputs": True}
            reason = Finding(code=agreement.reason.code, values=known)
            raise WrongOutputError(reason, agreement.error)

    def _note_without_effect(
        self, name: str, build: Build, inputs: Tensors, others: Tensors
    ) -> None:
        """Catches an input, such as a mask, that a variant's output does not follow where the
        baseline's does, each changed by itself; and a layout that the build made of the data.

        They may belong together, so this is no proof of anything.
        """
        shapes = [tensor.shape for tensor in inputs]
        is_baseline = name == self._stepping.baseline
        if is_baseline:
            self._items = build.work.items
            self._bytes = sum(tensor.nbytes for tensor in inputs)
            held = [*inputs, *map(whole_memory, inputs)]
            self._shapes = shapes
            self._samples = [(tensor.shape, sample_of(tensor)) for tensor in held]
        elif self._samples and not self._holds_baselines(inputs):
            if build.work.items == self._items:
                self._doubt(layout_made_in_build(name))
            return
        elif shapes != self._shapes:
            return
        effective = set()
        for place, (tensor, other) in enumerate(zip(inputs[:_MOST_INPUTS], others, strict=False)):
            changed = other if tensors.changed([tensor], [other]) else values.flipped(tensor)
            if changed is not None and self._has_effect(build, tensor, changed):
                effective.add(place)
        if is_baseline:
            self._effective = effective
        elif missing := sorted(self._effective - effective):
            place = missing[0] + 1
            both = [inputs[missing[0]], *others[missing[0] : place]]
            zero = all(map(values.is_zero, both))
            self._doubt(input_without_effect(name, input=place, inputs=len(inputs), zero=zero))

    def _holds_baselines(self, inputs: Tensors) -> bool:
        """Return whether each input holds one of the baseline's, in logical order or in memory
        order, or is a part of its memory; or all of them are smaller: then the baseline's were made
        of them.
        """
        if sum(tensor.nbytes for tensor in inputs) < self._bytes:
            return True
        return all(
            self._is_baselines(tensor)
            or self._is_baselines(in_memory_order(tensor))
            or self._is_baselines(whole_memory(tensor))
            for tensor in inputs
        )

    def _is_baselines(self, tensor: torch.Tensor) -> bool:
        sample = sample_of(tensor)
        return any(
            shape == tensor.shape and torch.allclose(known, sample, rtol=5e-2, equal_nan=True)
            for shape, known in self._samples
        )

    def _has_effect(self, build: Build, tensor: torch.Tensor, value: torch.Tensor) -> bool:
        """Return whether the output changes with one input; where a step fails with it, it does."""
        usual = tensors.kept(self._stepping.step(build))
        output = unless_it_fails(lambda: self._stepping.output(build, [value], [tensor]))
        return output is None or tensors.changed(output, usual)

    def _ignored(self, build: Build, donated: Tensors, inputs: Tensors) -> int | None:
        """The first input, from 1, that another seed changes and the output does not follow."""
        for place, (tensor, value) in enumerate(zip(inputs, donated, strict=True)):
            if tensors.changed([tensor], [value]) and not self._has_effect(build, tensor, value):
                return place + 1
        return None

    def try_cases(self, variant: Variant, build: Build, inputs: Tensors) -> None:
        """Catches what is left out for values that are rare, such as NaN: on all that the scenario
        says that its inputs may also be. WrongOutputError where the output is another there.
        """
        for case in self._cases:
            if isinstance(case, str):
                text = case
            else:
                text = " ".join(f"{name}={value}" for name, value in case.items())
            is_baseline = variant.name == self._stepping.baseline
            if not is_baseline and text not in self.outputs:
                continue
            output = unless_it_fails(partial(self._case_output, variant, build, inputs, case))
            if is_baseline:
                if output is not None and not tensors.has_nan(output):
                    self.outputs[text] = output
                continue
            agreed = Agreement(False)
            if output is not None:
                agreed = self._stepping.agree(build, output, self.outputs[text])
            if agreed.ok:
                continue
            error = agreed.error
            allowed = agreed.tolerance
            reason = wrong_in_case(case=text, fails=output is None, error=error, allowed=allowed)
            raise WrongOutputError(reason, error, check=CheckKind.OUTPUTS)

    def _case_output(self, variant: Variant, build: Build, inputs: Tensors, case: Case) -> Tensors:
        if isinstance(case, str):
            return self._stepping.output(build, values.case(case, inputs), inputs)
        other = self._stepping.builder.build(variant, params=case)
        try:
            return self._first_output(other)
        finally:
            other.close()
