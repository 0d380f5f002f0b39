"""Whether a variant computes what the baseline computes, on values that its build never saw as
well.

Equal outputs are not enough: a step that returns what its build computed is equal too, and fast. So
each variant is built a second time with another seed, which is the author's own way to other
values, and those values are copied into the first build: its output has to follow.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from time import perf_counter

import torch

from gpulab.core.events import Checked, Event, Examined, Unchecked
from gpulab.core.finding import Finding, Value, finding
from gpulab.core.statuses import CheckKind, CheckTime
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build, Builder, have_moved
from gpulab.engine.processes.device import release_memory
from gpulab.engine.processes.failure import (
    RefusedError,
    UncheckedError,
    WrongOutputError,
    checking,
    forget,
    is_out_of_memory,
)
from gpulab.features.checks import values
from gpulab.features.checks.effects import left_by
from gpulab.features.checks.other_values import OTHER, Case, OtherValues
from gpulab.features.checks.stepping import (
    ReadingTimes,
    Stepping,
    output_lies_in,
    poison_output,
    require_quick,
    timed_step,
)
from gpulab.features.checks.values import Change, Own
from gpulab.scenario import Variant

_MOST_DIMENSIONS = 4
Agree = Callable[[list[torch.Tensor], list[torch.Tensor]], bool]
"""Whether an output passes for a reference."""


def passing(
    reference: list[torch.Tensor], inputs: Sequence[torch.Tensor], agree: Agree
) -> dict[str, bool]:
    """By the name of each null answer whether it passes for the reference; all should fail.

    A single number has no spread: of it only zero is tried.
    """
    return {name: agree(answer, reference) for name, answer in _answers(reference, inputs)}


def _answers(
    reference: list[torch.Tensor], inputs: Sequence[torch.Tensor]
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    yield "zeros", [torch.zeros_like(tensor) for tensor in reference]
    if all(tensor.numel() <= 1 for tensor in reference):
        return
    yield "the mean", [_mean(tensor, range(tensor.dim())) for tensor in reference]
    for axis in range(min(max(tensor.dim() for tensor in reference), _MOST_DIMENSIONS)):
        # One number along an axis, and all the others as they should be.
        if any(tensor.dim() > axis and tensor.shape[axis] > 1 for tensor in reference):
            yield f"one value along axis {axis}", [_mean(tensor, (axis,)) for tensor in reference]
    yield "noise", [_noise(tensor) for tensor in reference]
    for index, tensor in enumerate(inputs):
        # A copy is right where the step copies.
        if (
            len(reference) == 1
            and tensor.numel() == reference[0].numel()
            and not _is_copy(tensor, reference[0])
        ):
            yield f"input {index + 1}", [tensor.detach().clone()]


def _mean(tensor: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    axes = [axis for axis in axes if axis < tensor.dim()]
    if not axes or not tensor.numel():
        return tensor.clone()
    wide = _wide(tensor)
    mean = wide.mean(dim=axes, keepdim=True).expand(tensor.shape)
    return _narrow(mean, tensor)


def _noise(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() < 2:
        return tensor.clone()
    wide = _wide(tensor)
    draw = torch.Generator(tensor.device).manual_seed(tensor.numel())
    noise = torch.randn(tensor.shape, generator=draw, device=tensor.device, dtype=wide.dtype)
    return _narrow(noise * wide.std() + wide.mean(), tensor)


def _is_copy(tensor: torch.Tensor, reference: torch.Tensor) -> bool:
    return bool(
        (_wide(tensor).reshape(-1).to(reference.device) == _wide(reference).reshape(-1)).all()
    )


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensors.computable(tensor)
    return tensor if tensor.is_floating_point() or tensor.is_complex() else tensor.double()


def _narrow(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    is_float = like.is_floating_point() or like.is_complex()
    return (values if is_float else values.round()).to(like.dtype)


_MORE_STEPS = 3
"""Steps by which an output that changed once has to show that it changes every time."""
_TIMES = (0.0, 4.0, 64.0)
"""Of the largest value of an input, until a few elements of it can be seen in the output."""
_GIANT, _MANY, _OF_SMALL = 1e5, 256, 10.0
"""Times the median from which on an element is a giant, of an output of so many elements; and what
the others may be off by, in tolerances.
"""
_OF_GRADIENT = 0.5
"""Relative error of a gradient that was not computed, or is of something else."""
_QUICK_S = 0.005
"""What comparing an output may take to be done several times in each process."""
Tensors = list[torch.Tensor]


class Checker:
    """Holds the baseline's outputs and compares each variant with them; says with `emit` what each
    check showed.
    """

    def __init__(
        self,
        builder: Builder,
        emit: Callable[[Event], None] | None = None,
        cases: Sequence[Case] = (),
        *,
        roomy: bool = True,
    ) -> None:
        """`roomy`: there is memory for a variant's outputs and a second build of it, beside what it
        needs itself.
        """
        self._builder, self._roomy = builder, roomy
        self._emit: Callable[[Event], None] = emit or (lambda event: None)
        self._draw = random.Random(f"values {builder.data_seed}")
        self.stepping = Stepping(builder)
        self.own: dict[str, Own] = {}
        """By variant what it gives in this process, for its inputs as they are and for changes of
        them.
        """
        self._others = OtherValues(self.stepping, self.own, self._doubt, self._examined, cases)
        self._reference: Tensors = []
        self._names_inputs = self._reads_inputs = False
        """Whether the baseline names any, and whether its output lies in them."""
        self.baseline_has_state = False
        self._later: list[Tensors] = []
        """The baseline's outputs step by step, where they change."""
        self._gradients: Tensors = []
        self._null_answers: dict[
            tuple[float | None, tuple[float, ...]], tuple[dict[str, bool], float]
        ] = {}
        """By what a variant declares which of them pass, and the tolerance; variants differ in
        nothing else there.
        """
        self._small: list[torch.Tensor | None] | None = None
        """Of each reference that has giants, which elements are none."""
        self._times = ReadingTimes(0.0, 0.0)
        """Of the baseline."""
        self.stateful: set[str] = set()
        """Variants whose output changes from step to step."""
        self.drawing: set[str] = set()
        """Variants whose steps draw random numbers."""
        self.findings: list[Finding] = []

    @property
    def baseline(self) -> str | None:
        """The variant that the others are compared with."""
        return self.stepping.baseline

    @property
    def dtype(self) -> str | None:
        """The baseline's declared one."""
        return self.stepping.dtype

    def before(self, variant: Variant, build: Build, inputs: Tensors, saved: Tensors) -> Checked:
        """All checks on a build whose first step has run; `saved` are its inputs before. The
        baseline comes first.

        WrongOutputError, RefusedError, and UncheckedError where a step returns nothing that could
        be compared.
        """
        name = variant.name
        self._require_inputs(name, build, inputs)
        with checking(CheckKind.OUTPUTS):
            first = self._first(name, build, inputs, saved)
        # NaN never equals itself, which is no state that changes from step to step
        if not tensors.finite(first):
            return self._against_reference(name, CheckTime.BEFORE, build, first)
        live, times = timed_step(self._builder, build)
        usual = self._usual(name, build, first)
        repeated = self.stepping.agree(build, live, usual)
        if not repeated.ok:
            return self._moving(name, build, first, tensors.kept(live), repeated)
        poison_output(build, live, inputs)
        del live
        again, more_times = timed_step(self._builder, build)
        times += more_times
        if not self.stepping.agree(build, again, usual).ok:
            raise WrongOutputError(finding("does_not_write_its_output"), check=CheckKind.OUTPUTS)
        self._examined(name, CheckKind.DETERMINISM, count=3)
        checked = self._against_reference(name, CheckTime.BEFORE, build, first)
        self._note_cap(name, build, first)
        self._note_small_elements(name, first, checked.tolerance or 0.0)
        lies_in = output_lies_in(again, inputs)
        del again
        if name == self.stepping.baseline:
            self._reads_inputs, self._times = lies_in, times
        elif lies_in and not self._reads_inputs:
            raise WrongOutputError(finding("output_is_its_input"), check=CheckKind.OUTPUTS)
        with checking(CheckKind.CONTEXT):
            require_quick(self._builder, build, times, self._times)
        context = build.work.context is not None
        self._examined(
            name, CheckKind.CONTEXT, output_s=times.read_s, step_s=times.step_s, context=context
        )
        if self._roomy:
            self.own[name] = Own(first, asynchronous=self.stepping.asynchronous)
        self._compare_gradients(name, build)
        self._if_it_fits(lambda: self._others.compare(variant, build, inputs, first_process=True))
        self._try_null_answers(name, build, saved)
        self._if_it_fits(lambda: self._others.try_cases(variant, build, inputs))
        self._if_it_fits(lambda: self._exchange(name, build, inputs))
        return checked

    def resume(
        self, baseline: str, dtype: str | None, stateful: Iterable[str], drawing: Iterable[str]
    ) -> None:
        """Go on from what an earlier process found out; the baseline's output is this one's own."""
        self.stepping.baseline, self.stepping.dtype = baseline, dtype
        self.stateful, self.drawing = set(stateful), set(drawing)

    def again(self, variant: Variant, build: Build, *, in_turn: bool, cheap: bool) -> float:
        """In a later process: the first step, and its output on this one's data.

        Where it is `in_turn`, or outputs are quick to compare, on some values of its own as well;
        `cheap`: a second build may be made for them. Seconds of that step; WrongOutputError where
        its output is not the baseline's.
        """
        name = variant.name
        known = name in self.stateful or name in self.own or not self._roomy
        earlier = self._first_exchange(variant) if cheap and not known else None
        seconds = self._builder.first_step(build)
        if known:
            self.still(name, build)
            return seconds
        if name == self.stepping.baseline:
            self.baseline_has_state = bool(build.state)
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        live = self.stepping.step(build)
        started = perf_counter()
        self._against_reference(name, CheckTime.BEFORE, build, live)
        quick = perf_counter() - started < _QUICK_S
        if not (in_turn or quick) or not tensors.finite(live):
            return seconds
        own = self.own[name] = Own(tensors.kept(live), asynchronous=self.stepping.asynchronous)
        del live
        if cheap and in_turn:
            self._if_it_fits(
                lambda: self._others.compare(variant, build, inputs, first_process=False)
            )
        if earlier is None or not own.add(*earlier):
            self._if_it_fits(lambda: self._exchange(name, build, inputs))
        return seconds

    def still(self, name: str, build: Build) -> None:
        """Once the build has been stepped for a while: WrongOutputError where its output is another
        by now.
        """
        if name not in self.stateful:
            self._against_reference(name, CheckTime.BEFORE, build, self.stepping.step(build))

    def after(self, name: str, build: Build, rebuild: Callable[[], Build]) -> Checked:
        """The same outputs again, once everything has been timed."""
        if name not in self.stateful:
            return self._against_reference(name, CheckTime.AFTER, build, self.stepping.step(build))
        fresh = rebuild()
        try:
            self._builder.first_step(fresh)
            self.stepping.step(fresh)
            return self._against_reference(name, CheckTime.AFTER, fresh, self.stepping.step(fresh))
        finally:
            fresh.close()

    def _if_it_fits(self, check: Callable[[], None]) -> None:
        """A check that takes more memory than the variant: where there is none, it is left out."""
        if not self._roomy:
            return
        try:
            check()
        except BaseException as error:
            if not is_out_of_memory(error):
                raise
            forget(error)
            release_memory(self._builder.device)

    def _require_inputs(self, name: str, build: Build, inputs: Tensors) -> None:
        """RefusedError where only the baseline names inputs, and a variant reads what its build
        made of the data.
        """
        if self.stepping.baseline is None:
            self.stepping.baseline, self.stepping.dtype = name, build.work.dtype
            self._names_inputs, self.baseline_has_state = bool(inputs), bool(build.state)
        if not inputs and name == self.stepping.baseline:
            skipped = finding("no_inputs_named", name)
            self.findings.append(skipped)
            self._emit(Examined(variant=name, check=CheckKind.INPUTS, skipped=skipped))
        elif not inputs and self._names_inputs:
            if self._others.reads_unknown(build):
                raise RefusedError(finding("inputs_not_named", name), check=CheckKind.INPUTS)
            self._doubt(name, finding("inputs_not_named", name))

    def _first(self, name: str, build: Build, inputs: Tensors, saved: Tensors) -> Tensors:
        first = tensors.kept(self.stepping.step(build))
        if have_moved(self._builder):
            self.drawing.add(name)
        if tensors.changed(inputs, saved):
            raise WrongOutputError(finding("changes_inputs"))
        if not first or (
            name == self.stepping.baseline and not any(tensor.numel() for tensor in first)
        ):
            raise UncheckedError(finding("returns_nothing", name))
        return first

    def _usual(self, name: str, build: Build, first: Tensors) -> Tensors:
        """What each further step has to agree with: two that are right differ by up to twice the
        tolerance.
        """
        if (
            name == self.stepping.baseline
            or self.stepping.baseline in self.stateful
            or not self._reference
        ):
            return first
        return self._reference if self.stepping.agree(build, first, self._reference).ok else first

    def _moving(
        self, name: str, build: Build, first: Tensors, second: Tensors, repeated: tensors.Agreement
    ) -> Checked:
        """An output that changed: no state is named, or other state than it depends on. It has to
        change every time.

        Three steps since the build, and so are the re-check's.
        """
        self.stateful.add(name)
        code = "state_not_restored" if build.state else "state_not_named"
        place = {"output": repeated.tensor + 1, "outputs": len(first), "error": repeated.error}
        self.findings.append(finding(code, name, **place))
        if name != self.stepping.baseline and self.stepping.baseline not in self.stateful:
            self._against_reference(name, CheckTime.BEFORE, build, first)
        later = [first, second]
        for step in range(_MORE_STEPS):
            later.append(tensors.kept(self.stepping.step(build)))
            if self.stepping.agree(build, later[-1], later[-2]).ok:
                raise RefusedError(
                    finding("output_wobbles", step=step + 3), check=CheckKind.DETERMINISM
                )
        if name == self.stepping.baseline:
            self._later = later
        for output, expected in zip(later, self._later, strict=False):
            agreement = self.stepping.agree(build, output, expected)
            if agreement.reason:
                raise WrongOutputError(agreement.reason, agreement.error)
        reason = finding(code, name, **place)
        self._emit(
            Examined(variant=name, check=CheckKind.DETERMINISM, count=len(later), reason=reason)
        )
        return self._against_reference(name, CheckTime.BEFORE, build, second)

    def _against_reference(
        self, name: str, when: CheckTime, build: Build, output: Tensors
    ) -> Checked:
        with checking(CheckKind.OUTPUTS):
            if name == self.stepping.baseline and not self._reference:
                self._set_reference(output)
            agreement = self.stepping.agree(build, output, self._reference)
            if agreement.reason:
                raise WrongOutputError(agreement.reason, agreement.error)
        self._examined(
            name,
            CheckKind.OUTPUTS,
            error=agreement.error,
            allowed=agreement.tolerance,
            cap=self._cap(build, output),
            elements=sum(tensor.numel() for tensor in output),
            bytes=sum(tensor.nbytes for tensor in output),
        )
        return Checked(
            variant=name, when=when, ok=True, error=agreement.error, tolerance=agreement.tolerance
        )

    def _cap(self, build: Build, output: Tensors) -> float:
        dtypes = (build.work.dtype, self.stepping.dtype)
        pairs = zip(output, self._reference, strict=False)
        return max(
            (tensors.cap_of(actual, expected, dtypes) for actual, expected in pairs), default=0.0
        )

    def _note_cap(self, name: str, build: Build, output: Tensors) -> None:
        declared, cap = build.work.tolerance, self._cap(build, output)
        if declared is None:
            return
        dtypes = (build.work.dtype, self.stepping.dtype)
        pairs = zip(output, self._reference, strict=False)
        usual = max(
            (tensors.tolerance_of(actual, expected, dtypes) for actual, expected in pairs),
            default=0.0,
        )
        if declared > cap:
            self.findings.append(finding("tolerance_capped", name, declared=declared, cap=cap))
        elif declared > usual:
            self.findings.append(finding("tolerance_widened", name, declared=declared, usual=usual))

    def _note_small_elements(self, name: str, output: Tensors, tolerance: float) -> None:
        """Say where a few elements are so large that the error of all others is next to nothing
        beside them.
        """
        if self._small is None:
            self._small = [_small_elements(expected) for expected in self._reference]
        for own, expected, small in zip(output, self._reference, self._small, strict=False):
            if small is None or own.numel() != expected.numel():
                continue
            wanted = tensors.computable(expected).double().reshape(-1)
            differences = (tensors.computable(own).double().reshape(-1).to(wanted.device) - wanted)[
                small
            ]
            error = float(differences.norm() / wanted[small].norm())
            if error > _OF_SMALL * tolerance:
                values = {"times": _GIANT, "error": error, "allowed": _OF_SMALL * tolerance}
                self._emit(
                    Examined(
                        variant=name,
                        check=CheckKind.OUTPUTS,
                        reason=finding("norm_in_few_elements", name, **values),
                    )
                )
                self.findings.append(finding("norm_in_few_elements", name, **values))
                return

    def _set_reference(self, output: Tensors) -> None:
        reference = tensors.kept(output)
        if not tensors.finite(reference):
            raise WrongOutputError(finding("baseline_not_finite"))
        if not any(bool((tensor != 0).any()) for tensor in reference):
            self.findings.append(finding("baseline_is_zeros"))
        self._reference = reference

    def _compare_gradients(self, name: str, build: Build) -> None:
        """What steps leave in `.grad`, where the baseline leaves the same each time:
        WrongOutputError.
        """
        left = tensors.kept(left_by(build))
        if name == self.stepping.baseline:
            self.stepping.step(build)
            steady = self.stepping.agree(build, left_by(build), left).ok if left else False
            self._gradients = left if steady else []
            return
        if not self._gradients:
            return
        if [tensor.shape for tensor in left] != [tensor.shape for tensor in self._gradients]:
            reason = finding(
                "gradients_not_left", name, count=len(left), baseline=len(self._gradients)
            )
            self._emit(Examined(variant=name, check=CheckKind.OUTPUTS, reason=reason))
            self.findings.append(reason)
            return
        for place, (own, expected) in enumerate(zip(left, self._gradients, strict=True)):
            agreement = tensors.agree([own], [expected], tolerance=_OF_GRADIENT)
            error = agreement.error if agreement.error is not None else inf
            if not agreement.ok and not error <= _OF_GRADIENT:
                reason = finding(
                    "gradient_differs", tensor=place + 1, tensors=len(left), error=agreement.error
                )
                raise WrongOutputError(reason, agreement.error, check=CheckKind.OUTPUTS)

    def _first_exchange(self, variant: Variant) -> tuple[Change, Tensors] | None:
        """An exchange of elements and the output for it, from the first step of a build of its own.

        None where that fails: there may be no memory for a second build.
        """
        build: Build | None = None
        try:
            build = self._builder.build(variant)
            inputs = tensors.live_leaves("inputs", build.work.inputs)
            change = values.exchange(inputs, self._draw)
            return None if change is None else (change, self.stepping.output(build, change, inputs))
        except (RuntimeError, ValueError, IndexError, MemoryError):
            return None
        finally:
            if build is not None:
                build.close()

    def _exchange(self, name: str, build: Build, inputs: Tensors) -> None:
        """Find an exchange of elements that the variant's output shows."""
        for times in _TIMES:
            change = values.exchange(inputs, self._draw, times)
            if change is None:
                return
            try:
                output = self.stepping.output(build, change, inputs)
                steady = self.stepping.agree(
                    build, self.stepping.output(build, change, inputs), output
                ).ok
            except (RuntimeError, ValueError, IndexError) as error:
                if is_out_of_memory(error):
                    raise
                return
            if steady and self.own[name].add(change, output):
                return

    def _try_null_answers(self, name: str, build: Build, saved: Tensors) -> None:
        """What knows nothing of the step must fail the check, or the check proves nothing."""

        def agree(answer: Tensors, reference: Tensors) -> bool:
            return self.stepping.agree(build, answer, reference).ok

        dtypes = build.work.dtype, self.stepping.dtype
        key = (
            build.work.tolerance,
            tuple(tensors.tolerance_of(tensor, tensor, dtypes) for tensor in self._reference),
        )
        if key not in self._null_answers:
            passed = passing(self._reference, saved, agree)
            if OTHER in self._others.outputs:
                again = passing(self._others.outputs[OTHER], (), agree)
                passed = {
                    answer: passes and again.get(answer, True) for answer, passes in passed.items()
                }
            self._null_answers[key] = (
                passed,
                self.stepping.agree(build, self._reference, self._reference).tolerance,
            )
        passed, allowed = self._null_answers[key]
        answer = next((answer for answer, passes in passed.items() if passes), None)
        if answer is not None:
            reason = finding("null_answer_passes", name, answer=answer, allowed=allowed)
            self._emit(
                Examined(
                    variant=name,
                    check=CheckKind.NULL_ANSWERS,
                    ok=False,
                    count=len(passed),
                    reason=reason,
                )
            )
            self._emit(Unchecked(variant=name, reason=reason))
        else:
            self._examined(name, CheckKind.NULL_ANSWERS, count=len(passed), allowed=allowed)

    def _doubt(self, name: str, reason: Finding) -> None:
        """Something that weakens what is known of the inputs of a variant."""
        self.findings.append(reason)
        self._emit(Examined(variant=name, check=CheckKind.INPUTS, reason=reason))

    def _examined(self, name: str, kind: CheckKind, *, count: int = 1, **shown: Value) -> None:
        self._emit(Examined(variant=name, check=kind, count=count, values=shown))


def _small_elements(reference: torch.Tensor) -> torch.Tensor | None:
    """Which elements are no giants, of a reference that has some; None where all are alike."""
    if not reference.is_floating_point() or reference.numel() < _MANY:
        return None
    sizes = tensors.computable(reference).double().reshape(-1).abs()
    small = sizes < _GIANT * sizes.median()
    return small if bool(small.any()) and not bool(small.all()) else None
