"""Whether a variant's output follows other values of its inputs as the baseline's does: of another seed, and in cases.

A build with another seed is the author's own way to other values: what is sorted, or positive definite, stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence

import torch

from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import CheckKind
from gpulab.scenario import Param, Variant
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build
from gpulab.worker.checking import unnamed, values
from gpulab.worker.checking.history import Own
from gpulab.worker.checking.stepping import Stepping
from gpulab.worker.checking.values import AllValues, Change
from gpulab.worker.process.errors import RefusedError, WrongOutputError, checking
from gpulab.worker.process.failure import is_out_of_memory

_OTHER_SEED = 700_001
"""Added to the seed of a process: that of the builds whose values are copied."""
_MOST_INPUTS = 8
"""That are changed one by one."""
OTHER, _DIRECT = "another seed", "another seed, by its own build"
Tensors = list[torch.Tensor]
Case = str | Mapping[str, Param]


class OtherValues:
    """Of one process: the baseline's outputs for other values, to which the variants' are compared.

    `own` is what each variant gives, `doubt` is told what weakens what is known of the inputs of a variant, `passed`
    what was compared.
    """

    def __init__(
        self,
        stepping: Stepping,
        own: MutableMapping[str, Own],
        doubt: Callable[[str, Finding], None],
        passed: Callable[..., None],
        cases: Sequence[Case],
    ) -> None:
        self._stepping, self._own, self._doubt, self._passed = stepping, own, doubt, passed
        self._cases = [name for case in cases for name in (values.FREE if case == "free" else (case,))]
        self.outputs: dict[str, Tensors] = {}
        """The baseline's, by what its values are."""
        self._known: list[unnamed.Figures] = []
        """Of all that the baseline reads, named or not."""
        self._unnamed: set[str] = set()
        """Variants that read what their builds made of the data, and nobody names."""
        self._kinds: list[torch.Size] = []
        self._items = 1.0
        self._samples: Tensors = []
        """Of the baseline's inputs: what they are, and some of their values."""
        self._effective: set[int] = set()
        """The baseline's inputs that its output follows, each changed by itself."""

    def compare(self, variant: Variant, build: Build, inputs: Tensors, *, first_process: bool) -> None:
        """Copy the values of a build with another seed, and compare: WrongOutputError where the output stays.

        A case in which the baseline fails, or is not finite, is none.
        """
        name, is_baseline = variant.name, variant.name == self._stepping.baseline
        if not inputs:
            return
        other = self._build_again(variant, required=not is_baseline and OTHER in self.outputs)
        if other is None:
            return
        try:
            donated = tensors.kept(tensors.live_leaves("inputs", other.work.inputs))
            changes = values.differ(inputs, donated)
            if first_process:
                self._note_unnamed(name, build, other, inputs)
                self._note_without_effect(name, build, inputs, donated if changes is not None else inputs)
            if changes is False and not is_baseline and OTHER in self.outputs:
                raise RefusedError(finding("inputs_not_from_the_seed"), check=CheckKind.INPUTS)
            if not changes:
                code = "seed_changes_shapes" if changes is None else "seed_changes_nothing"
                self._doubt(name, finding(code, name)) if first_process else None
                return
            change = AllValues(OTHER, donated)
            if is_baseline:
                self._refer(name, build, other, change, inputs)
            elif OTHER in self.outputs:
                self._follow(name, build, other, change, inputs)
        finally:
            other.close()

    def _build_again(self, variant: Variant, *, required: bool) -> Build | None:
        try:
            return self._stepping.builder.build(variant, other_seed=self._stepping.builder.data_seed + _OTHER_SEED)
        except Exception as error:
            if required and not is_out_of_memory(error):
                raise
            return None

    def _refer(self, name: str, build: Build, other: Build, change: Change, inputs: Tensors) -> None:
        """The baseline's outputs for the values of another seed: copied, and as that build itself computes them."""
        try:
            output = self._stepping.output(build, change, inputs)
            self._stepping.builder.first_step(other)
            direct = tensors.kept(self._stepping.step(other))
        except (RuntimeError, ValueError, IndexError) as error:
            if is_out_of_memory(error):
                raise
            return
        if not tensors.finite(output):
            return
        self.outputs[OTHER], self.outputs[_DIRECT] = output, direct
        if not self._own[name].add(change, output):
            self._doubt(name, finding("output_ignores_change", name))

    def _follow(self, name: str, build: Build, other: Build, change: AllValues, inputs: Tensors) -> None:
        """A variant's output for the values of another seed: the baseline's for the same. WrongOutputError."""
        with checking(CheckKind.OUTPUTS):
            output = self._stepping.output(build, change, inputs)
            agreement = self._stepping.agree(build, output, self.outputs[OTHER])
            if agreement.ok:
                if callable(build.work.output):
                    self._require_step(build, change, inputs)
                self._own[name].add(change, output)
                self._passed(name, CheckKind.INPUTS, inputs=len(inputs), allowed=agreement.tolerance)
                return
            if place := self._ignored(build, change, inputs):
                ignored = finding("ignores_its_inputs", input=place, inputs=len(inputs))
                raise WrongOutputError(ignored, agreement.error)
            self._stepping.builder.first_step(other)
            if self._stepping.agree(build, self._stepping.step(other), self.outputs[_DIRECT]).ok:
                # Its own build of these values is right: what it names is not all that it reads.
                incomplete = finding("inputs_incomplete", name, error=agreement.error)
                if name in self._unnamed:
                    raise RefusedError(incomplete, check=CheckKind.INPUTS)
                self._doubt(name, incomplete)
                return
            assert agreement.reason is not None
            reason = Finding(code=agreement.reason.code, values={**agreement.reason.values, "other_inputs": True})
            raise WrongOutputError(reason, agreement.error)

    def _require_step(self, build: Build, change: AllValues, inputs: Tensors) -> None:
        """RefusedError where an output that is read once its inputs have changed follows them without a step."""
        late = self._stepping.late_output(build, change, inputs)
        usual = self._own[build.variant].usual
        if self._stepping.agree(build, late, self.outputs[OTHER]).ok and tensors.changed(late, usual):
            raise RefusedError(finding("output_computes_when_read"), check=CheckKind.CONTEXT)

    def _note_without_effect(self, name: str, build: Build, inputs: Tensors, others: Tensors) -> None:
        """Say which input a variant's output does not follow where the baseline's does, each changed by itself.

        They may belong together, so this is no proof of anything.
        """
        kinds = [tensor.shape for tensor in inputs]
        if name == self._stepping.baseline:
            self._kinds, self._items = kinds, build.work.items
            self._samples = [unnamed.sample(tensor) for tensor in inputs]
        elif self._kinds and not self._holds_baselines(inputs):
            if build.work.items == self._items:
                self._doubt(name, finding("layout_made_in_build", name))
            return
        elif kinds != self._kinds:
            return
        effective = set()
        for place, (tensor, other) in enumerate(zip(inputs[:_MOST_INPUTS], others, strict=False)):
            changed = other if tensors.changed([tensor], [other]) else values.flipped(tensor)
            if changed is None or not self._has_effect(build, tensor, changed):
                continue
            effective.add(place)
        if name == self._stepping.baseline:
            self._effective = effective
        elif missing := sorted(self._effective - effective):
            self._doubt(name, finding("input_without_effect", name, input=missing[0] + 1, inputs=len(inputs)))

    def _holds_baselines(self, inputs: Tensors) -> bool:
        """Whether each input holds the values of one of the baseline's, in their order or in that of its memory."""
        known = list(zip(self._kinds, self._samples, strict=True))
        return all(
            any(
                shape == view.shape and torch.allclose(sample, unnamed.sample(view), rtol=5e-2)
                for view in (tensor, unnamed.in_memory_order(tensor))
                for shape, sample in known
            )
            for tensor in inputs
        )

    def _has_effect(self, build: Build, tensor: torch.Tensor, value: torch.Tensor) -> bool:
        """Whether the output is another for other values of one input; where a step fails with them, it is."""
        usual = tensors.kept(self._stepping.step(build))
        try:
            return tensors.changed(self._stepping.output(build, AllValues(OTHER, [value]), [tensor]), usual)
        except (RuntimeError, ValueError, IndexError):
            return True

    def _ignored(self, build: Build, change: AllValues, inputs: Tensors) -> int | None:
        """The first input, from 1, whose values another seed changes and the output does not follow at all."""
        for place, (tensor, value) in enumerate(zip(inputs, change.values, strict=True)):
            if tensors.changed([tensor], [value]) and not self._has_effect(build, tensor, value):
                return place + 1
        return None

    def reads_unknown(self, build: Build) -> bool:
        """Whether a step of a variant that names nothing reads values which the baseline does not have."""
        return bool(unnamed.unknown([unnamed.figures(tensor) for tensor in unnamed.unnamed_of(build, ())], self._known))

    def _note_unnamed(self, name: str, build: Build, other: Build, inputs: Tensors) -> None:
        """Say that a variant reads tensors which its build made of random values, and nobody names."""
        read = unnamed.unnamed_of(build, inputs)
        own = [unnamed.figures(tensor) for tensor in read]
        if name == self._stepping.baseline:
            self._known = [*own, *(unnamed.figures(tensor) for tensor in inputs)]
            return
        places = unnamed.unknown(own, self._known)
        if not places:
            return
        others = unnamed.unnamed_of(other, tensors.live_leaves("inputs", other.work.inputs))
        elsewhere = [unnamed.figures(tensor) for tensor in others]
        places = [place for place in places if unnamed.unknown([own[place]], elsewhere)]
        if places:
            size = sum(read[place].nbytes for place in places)
            self._unnamed.add(name)
            self._doubt(name, finding("unnamed_tensors", name, count=len(places), bytes=size))

    def try_cases(self, variant: Variant, build: Build, inputs: Tensors) -> None:
        """What the scenario says that its inputs may also be: WrongOutputError where the output is another there."""
        for number, case in enumerate(self._cases):
            key = case if isinstance(case, str) else f"case {number}"
            text = case if isinstance(case, str) else " ".join(f"{name}={value}" for name, value in case.items())
            if variant.name == self._stepping.baseline:
                output = self._in_case(variant, build, inputs, case)
                if output is not None and tensors.finite(output):
                    self.outputs[key] = output
                continue
            if key not in self.outputs:
                continue
            output = self._in_case(variant, build, inputs, case)
            agreement = None if output is None else self._stepping.agree(build, output, self.outputs[key])
            if agreement is None or not agreement.ok:
                error = agreement.error if agreement else None
                allowed = agreement.tolerance if agreement else 0.0
                reason = finding("wrong_in_case", case=text, fails=output is None, error=error, allowed=allowed)
                raise WrongOutputError(reason, error, check=CheckKind.OUTPUTS)

    def _in_case(self, variant: Variant, build: Build, inputs: Tensors, case: Case) -> Tensors | None:
        """The output of a variant in a case; None where it fails there."""
        try:
            if isinstance(case, str):
                return self._stepping.output(build, values.case(case, inputs), inputs)
            other = self._stepping.builder.build(variant, params=case)
            try:
                self._stepping.builder.first_step(other)
                return tensors.kept(self._stepping.step(other))
            finally:
                other.close()
        except (RuntimeError, ValueError, IndexError) as error:
            if is_out_of_memory(error):
                raise
            return None
