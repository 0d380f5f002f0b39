"""Whether a variant computes what the baseline computes, on values that its build never saw as
well.

Equal outputs are not enough: a step that returns what its build computed is equal too, and fast. So
each variant is built a second time with another seed, which is the author's own way to other
values, and those values are copied into the first build: its output has to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import perf_counter

from gpulab.core.events import Checked, Event, Examined, StageStarted, Unchecked
from gpulab.core.findings import Finding, Value
from gpulab.core.statuses import CheckKind, Stage
from gpulab.engine.build import agreement, tensors
from gpulab.engine.build.agreement import Agreement
from gpulab.engine.build.build import Build, Builder, have_moved
from gpulab.engine.measure.outputs import poison_output
from gpulab.engine.processes.device import is_mostly_free, release_memory
from gpulab.engine.processes.failure import (
    UncheckedError,
    WrongOutputError,
    checking,
    forget,
    is_out_of_memory,
)
from gpulab.engine.rounding import TOLERANCE
from gpulab.features.checks.effects import (
    Amount,
    Effect,
    Gradients,
    Named,
    compare_updates,
    gradients_of,
    same_names,
    unnamed_memory,
    worst_gradient,
)
from gpulab.features.checks.findings import (
    baseline_holds_nan,
    baseline_is_nan,
    baseline_is_zeros,
    changes_inputs,
    does_not_write_its_output,
    effect_differs,
    effects_not_left,
    element_counts_differ,
    farther_from_float64,
    gradient_differs,
    gradients_not_left,
    inputs_not_exchanged,
    inputs_not_named,
    inputs_read_only,
    inputs_without_tensors,
    maybe_rounding,
    near_to_float64,
    no_inputs_named,
    null_answer_passes,
    output_is_its_input,
    output_of_another_kind,
    outputs_cut_differently,
    relative_error,
    returns_nothing,
    shapes_differ,
    state_not_named,
    state_not_restored,
    tolerance_capped,
    tolerance_widened,
)
from gpulab.features.checks.null_answers import passing
from gpulab.features.checks.other_values import Case, OtherValues
from gpulab.features.checks.stepping import Stepping, Tensors, unless_it_fails
from gpulab.features.checks.values import OTHER, Own
from gpulab.features.checks.wider import Errors, errors_in, may_be_right
from gpulab.scenario import Variant

_LATER_STEPS = 3
"""Further steps of an output that changes from step to step, which are compared as well."""
_TWO_TOLERANCES = 2.5
"""Tolerances that two outputs of low precision may differ by, each within one of the truth, where
nothing says which is nearer.
"""
_QUICK_S = 0.005
"""What comparing an output may take to be done several times in each process."""


class Checker:
    """Compares each variant with the baseline's outputs; `emit` takes what each check showed."""

    def __init__(
        self,
        builder: Builder,
        emit: Callable[[Event], None],
        cases: Sequence[Case],
        *,
        increasing_memory: bool = False,
    ) -> None:
        self._builder = builder
        self._increasing_memory = increasing_memory
        self._rooms: dict[str, bool] = {}
        self._emit = emit
        self.stepping = Stepping(builder)
        self.own: dict[str, Own] = {}
        """By variant what it gives in this process, for its inputs and for changes of them."""
        self._others = OtherValues(self.stepping, self.own, self._note, self._examined, cases)
        self._names_inputs = self._output_in_inputs = False
        """Of the baseline, as are the outputs that others are compared with:"""
        self._reference: Tensors = []
        self._later: list[Tensors] = []
        """Step by step, where they change."""
        self._gradients = Gradients()
        self._effects: list[Effect] = []
        self._changes = Amount()
        """What a step of the baseline changes of its named state, beside its output."""
        self._variants: dict[str, Variant] = {}
        """That came so far."""
        self._null_answers: dict[object, tuple[dict[str, bool], float]] = {}
        """By what a variant declares: which of them pass, and the tolerance."""
        self.stateful: set[str] = set()
        """Variants whose output changes from step to step."""
        self.drawing: set[str] = set()
        """Variants whose steps draw random numbers."""
        self.findings: list[Finding] = []

    @property
    def baseline(self) -> str | None:
        """The variant that the others are compared with."""
        return self.stepping.baseline

    def before(self, variant: Variant, build: Build, inputs: Tensors, saved: Tensors) -> Checked:
        """All checks on a build whose first step has run; `saved` are its inputs before. The
        baseline comes first.

        WrongOutputError, RefusedError, and UncheckedError where a step returns nothing that could
        be compared.
        """
        name = variant.name
        self._variants[name] = variant
        self._require_inputs(name, build, inputs)
        with checking(CheckKind.OUTPUTS):
            first = self._first_output(name, build, inputs, saved)
        # NaN is what unwritten output is told by
        if tensors.has_nan(first):
            return self._against_reference(name, build, first)
        live = self.stepping.step(build)
        usual = self._usual(name, build, first)
        repeated = self.stepping.agree(build, live, usual)
        if not repeated.ok:
            return self._follow_state(name, build, first, tensors.kept(live), repeated)
        poison_output(build, live, inputs)
        del live  # so that the next step may be given its memory
        live = self.stepping.step(build)
        if not self.stepping.agree(build, live, usual).ok:
            raise WrongOutputError(does_not_write_its_output(), check=CheckKind.OUTPUTS)
        self._examined(name, CheckKind.DETERMINISM, count=3)
        checked = self._against_reference(name, build, first)
        self._note_tolerance(name, build, first)
        self._note_kind(name, first)
        self._require_own_memory(name, live, inputs)
        del live
        self._examined(name, CheckKind.CONTEXT)
        if self._has_room(name):
            self.own[name] = Own(first, asynchronous=self.stepping.asynchronous)
        self._compare_gradients(name, build)
        self._if_it_fits(name, lambda: self._compare_effects(name, build, inputs))
        self._says(name, "another seed's values")
        self._if_it_fits(
            name, lambda: self._others.compare(variant, build, inputs, first_process=True)
        )
        self._says(name, "null answers")
        self._try_null_answers(name, build, saved)
        self._if_it_fits(name, lambda: self._others.try_cases(variant, build, inputs))
        return checked

    def resume(
        self,
        baseline: str,
        dtype: str | None,
        stateful: Iterable[str],
        drawing: Iterable[str],
        widened: Mapping[str, float],
    ) -> None:
        """Go on from what an earlier process found out; the baseline's output is this one's own."""
        self.stepping.baseline = baseline
        self.stepping.dtype = dtype
        self.stateful = set(stateful)
        self.drawing = set(drawing)
        self.stepping.widened = dict(widened)

    def again(self, variant: Variant, build: Build, *, in_turn: bool, cheap: bool) -> float:
        """In a later process: the first step, and its output on this one's data.

        Where it is `in_turn`, or outputs are quick to compare, on some values of its own as well;
        `cheap`: a second build may be made for them. Seconds of that step; WrongOutputError where
        its output is not the baseline's.
        """
        name = variant.name
        self._variants[name] = variant
        known = name in self.stateful or name in self.own or not self._has_room(name)
        seconds = self._builder.first_step(build)
        if known:
            self.still(name, build)
            return seconds
        if name == self.baseline:
            self.stepping.baseline_has_state = bool(build.state)
        inputs = tensors.live_leaves("inputs", build.work.inputs)
        live = self.stepping.step(build)
        started = perf_counter()
        self._against_reference(name, build, live)
        quick = perf_counter() - started < _QUICK_S
        if not (in_turn or quick) or tensors.has_nan(live):
            return seconds
        self.own[name] = Own(tensors.kept(live), asynchronous=self.stepping.asynchronous)
        del live
        if cheap and in_turn:
            self._if_it_fits(
                name, lambda: self._others.compare(variant, build, inputs, first_process=False)
            )
        return seconds

    def still(self, name: str, build: Build) -> None:
        """Once the build has been stepped for a while. WrongOutputError."""
        if name not in self.stateful:
            self._against_reference(name, build, self.stepping.step(build))

    def after(self, name: str, build: Build, rebuild: Callable[[], Build]) -> Checked:
        """The same outputs again, once everything has been timed."""
        if name not in self.stateful:
            return self._against_reference(name, build, self.stepping.step(build))
        fresh = rebuild()
        try:
            self._builder.first_step(fresh)
            self.stepping.step(fresh)
            return self._against_reference(name, fresh, self.stepping.step(fresh))
        finally:
            fresh.close()

    def _if_it_fits(self, name: str, check: Callable[[], None]) -> None:
        """A check that takes more memory than the variant: where there is none, it is left out."""
        if not self._has_room(name):
            return
        try:
            check()
        except BaseException as error:
            if not is_out_of_memory(error):
                raise
            forget(error)
            release_memory(self._builder.device)

    def _has_room(self, name: str) -> bool:
        """Return whether there is memory for a variant's outputs and a second build, beside what it
        and larger ones need; as it was when this was first asked of it.
        """
        if not self._increasing_memory:
            return True
        if name not in self._rooms:
            self._rooms[name] = is_mostly_free(self._builder.device)
        return self._rooms[name]

    def _says(self, name: str, detail: str) -> None:
        """Announce the next check of a variant: each may take seconds."""
        self._emit(StageStarted(stage=Stage.CHECK, variant=name, detail=detail))

    def _require_inputs(self, name: str, build: Build, inputs: Tensors) -> None:
        """Catches inputs that nobody can change."""
        if self.baseline is None:
            self.stepping.baseline = name
            self.stepping.dtype = build.work.dtype
            self._names_inputs = bool(inputs)
            self.stepping.baseline_has_state = bool(build.state)
        if inputs:
            return
        read_only, kind = tensors.read_only(build.work.inputs)
        if read_only:
            reason = inputs_not_exchanged(name, kind=kind) if kind else inputs_read_only(name)
            self._note(CheckKind.INPUTS, reason)
        elif name == self.baseline:
            skipped = (inputs_without_tensors if build.work.inputs else no_inputs_named)(name)
            self.findings.append(skipped)
            self._emit(Examined(variant=name, check=CheckKind.INPUTS, skipped=skipped))
        elif self._names_inputs:
            reason = (inputs_without_tensors if build.work.inputs else inputs_not_named)(name)
            self._note(CheckKind.INPUTS, reason)

    def _first_output(self, name: str, build: Build, inputs: Tensors, saved: Tensors) -> Tensors:
        """Return the second step's output. Catches inputs changed for whoever comes after."""
        first = tensors.kept(self.stepping.step(build))
        if have_moved(self._builder):
            self.drawing.add(name)
        if tensors.changed(inputs, saved):
            raise WrongOutputError(changes_inputs())
        is_empty = not any(tensor.numel() for tensor in first)
        if not first or (is_empty and name == self.baseline):
            raise UncheckedError(returns_nothing(name))
        return first

    def _usual(self, name: str, build: Build, first: Tensors) -> Tensors:
        """Return what further steps must match: two right ones differ by up to two tolerances."""
        if name == self.baseline or self.baseline in self.stateful or not self._reference:
            return first
        agrees = self.stepping.agree(build, first, self._reference).ok
        return self._reference if agrees else first

    def _follow_state(
        self, name: str, build: Build, first: Tensors, second: Tensors, repeated: Agreement
    ) -> Checked:
        """An output that changes: no state is named, or other state than it depends on. It has to
        change as the baseline's does, step by step.

        Three steps since the build, and so are the re-check's.
        """
        self.stateful.add(name)
        moving = state_not_restored if build.state else state_not_named
        reason = moving(name, output=repeated.tensor + 1, outputs=len(first), error=repeated.error)
        self.findings.append(reason)
        if name != self.baseline and self.baseline not in self.stateful:
            self._against_reference(name, build, first)
        later = [first, second]
        later += [tensors.kept(self.stepping.step(build)) for _ in range(_LATER_STEPS)]
        if name == self.baseline:
            self._later = later
        for output, expected in zip(later, self._later, strict=False):
            self.stepping.require(build, output, expected)
        self._emit(
            Examined(variant=name, check=CheckKind.DETERMINISM, count=len(later), reason=reason)
        )
        return self._against_reference(name, build, second)

    def _against_reference(self, name: str, build: Build, output: Tensors) -> Checked:
        """Catches any other output than the baseline's. WrongOutputError."""
        with checking(CheckKind.OUTPUTS):
            if name == self.baseline and not self._reference:
                self._set_reference(output)
            agreed = self.stepping.agree(build, output, self._reference)
            reason = agreement.located(agreed, output, self._reference)
            if reason:
                kept = tensors.kept(output)  # more steps write over it
                self._judge_in_float64(name, build, agreed, reason)
                agreed = self._require(name, build, kept)
        allowed = None if name in self.stepping.widened else agreed.tolerance
        self._examined(
            name,
            CheckKind.OUTPUTS,
            error=agreed.error,
            allowed=allowed,
        )
        return Checked(variant=name, ok=True, error=agreed.error, tolerance=allowed)

    def _require(self, name: str, build: Build, output: Tensors) -> Agreement:
        """The output agrees with the reference. WrongOutputError where it does not, which says so
        where both draw random numbers.
        """
        try:
            return self.stepping.require(build, output, self._reference)
        except WrongOutputError as error:
            of_shape = error.finding.code in (element_counts_differ.code, shapes_differ.code)
            if of_shape or not {name, self.baseline} <= self.drawing:
                raise
            known = {**error.finding.values, "both_draw": True}
            finding = Finding(code=error.finding.code, values=known)
            raise WrongOutputError(finding, error.error) from None

    def _judge_in_float64(
        self, name: str, build: Build, agreed: Agreement, reason: Finding
    ) -> None:
        """Allow a variant to be further from the baseline than its tolerance, where it is as near
        as the baseline to what the baseline gives in float64: both have errors. WrongOutputError
        where it is farther.
        """
        error = agreed.error
        allowed = agreed.tolerance
        judged = name in (self.baseline, *self.stepping.widened)
        if judged or error is None or not may_be_right(error, allowed):
            return
        errors = self._errors_in_float64(name, build, allowed)
        if errors is None:
            if self._baseline_is_low() and error <= _TWO_TOLERANCES * allowed:
                self.stepping.widened[name] = _TWO_TOLERANCES * allowed
                self._note(CheckKind.OUTPUTS, maybe_rounding(name, error=error, allowed=allowed))
            return
        if not errors.is_as_near:
            if reason.code != relative_error.code:
                return
            farther = farther_from_float64(
                error=error,
                allowed=allowed,
                own=errors.own,
                baseline=errors.baseline,
                place=str(reason.values.get("place", "")),
            )
            raise WrongOutputError(farther, error)
        self.stepping.widened[name] = errors.apart
        self.findings.append(
            near_to_float64(name, error=error, own=errors.own, baseline=errors.baseline)
        )

    def _errors_in_float64(self, name: str, build: Build, allowed: float) -> Errors | None:
        """None where they cannot be known: steps that draw random numbers draw others in it."""
        baseline = self._variants.get(self.baseline or "")
        variant = self._variants.get(name)
        if baseline is None or variant is None or name in self.drawing or not self._has_room(name):
            return None
        try:
            return errors_in(self.stepping, baseline, variant, build, tolerance=allowed)
        except Exception as error:
            forget(error)
            return None

    def _baseline_is_low(self) -> bool:
        """Return whether the baseline's own error may be as large as what is allowed."""
        dtypes = (self.stepping.dtype,)
        allowed = [agreement.tolerance_of(part, part, dtypes) for part in self._reference]
        return max(allowed, default=0.0) > TOLERANCE["fp32"]

    def _set_reference(self, output: Tensors) -> None:
        reference = tensors.kept(output)
        if tensors.has_nan(reference):
            if not any(bool((tensor == tensor).any()) for tensor in reference):
                raise WrongOutputError(baseline_is_nan())
            self.findings.append(baseline_holds_nan())
        if not any(bool((tensor != 0).any()) for tensor in reference):
            self.findings.append(baseline_is_zeros())
        self._reference = reference

    def _largest(self, limit: Callable[..., float], build: Build, output: Tensors) -> float:
        """A limit of `agreement`, the largest of all tensors of an output."""
        dtypes = self.stepping.dtypes(build)
        pairs = zip(output, self._reference, strict=False)
        return max((limit(actual, expected, dtypes) for actual, expected in pairs), default=0.0)

    def _require_own_memory(self, name: str, live: Tensors, inputs: Tensors) -> None:
        """Catches a view instead of a copy. WrongOutputError where the baseline copies."""
        in_inputs = bool(tensors.storages(live) & tensors.storages(inputs))
        if name == self.baseline:
            self._output_in_inputs = in_inputs
        elif in_inputs and not self._output_in_inputs:
            raise WrongOutputError(output_is_its_input(), check=CheckKind.OUTPUTS)

    def _note_tolerance(self, name: str, build: Build, output: Tensors) -> None:
        """Catches a tolerance by which much would pass."""
        declared = build.work.tolerance
        if declared is None:
            return
        cap = self._largest(agreement.cap_of, build, output)
        usual = self._largest(agreement.tolerance_of, build, output)
        if declared > cap:
            self.findings.append(tolerance_capped(name, declared=declared, cap=cap))
        elif declared > usual:
            self.findings.append(tolerance_widened(name, declared=declared, usual=usual))

    def _note_kind(self, name: str, output: Tensors) -> None:
        """Says where an output has another shape or dtype than the baseline's, and is right."""
        if len(output) != len(self._reference):
            counts = {"outputs": len(output), "baseline": len(self._reference)}
            self.findings.append(outputs_cut_differently(name, **counts))
            return
        for place, pair in enumerate(zip(output, self._reference, strict=True), 1):
            kind, other = (f"{str(part.dtype)[6:]} {list(part.shape)}" for part in pair)
            if kind != other:
                where = {"output": place, "outputs": len(output)}
                found = output_of_another_kind(name, **where, kind=kind, baseline=other)
                self.findings.append(found)
                return

    def _compare_gradients(self, name: str, build: Build) -> None:
        """Catches a backward pass that is left out: WrongOutputError where steps do not leave in
        `.grad` what the baseline leaves there each time.
        """
        own = gradients_of(build)
        if name == self.baseline:
            self.stepping.step(build)
            again = gradients_of(build)
            dtypes = self.stepping.dtypes(build)
            if own.left and agreement.agree(again.left, own.left, dtypes=dtypes).ok:
                self._gradients = own
            return
        expected = self._gradients
        if not expected.left:
            return
        sizes = [sorted(tensor.numel() for tensor in left) for left in (own.left, expected.left)]
        if sizes[0] != sizes[1]:
            counts = {"count": len(own.left), "baseline": len(expected.left)}
            self._note(CheckKind.OUTPUTS, gradients_not_left(name, **counts))
            return
        tolerance = self._largest(agreement.tolerance_of, build, self._reference)
        if worst := worst_gradient(own, expected, tolerance):
            place, error = worst
            reason = gradient_differs(tensor=place + 1, tensors=len(own.left), error=error)
            raise WrongOutputError(reason, error, check=CheckKind.OUTPUTS)

    def _compare_effects(self, name: str, build: Build, inputs: Tensors) -> None:
        """Catches running statistics, averages of weights and the like that are left out: tensors
        that each of the baseline's steps changes, on the same inputs, though nobody names them.
        WrongOutputError where those of the same names come to be others.
        """
        if name != self.baseline and not self._effects and not self._changes.tensors:
            return
        memory = unnamed_memory(build, inputs)
        if name == self.baseline:
            self._changes = self._changed_by(build, build.state) or Amount()
            self._effects = self._effects_of(build, memory)
            return
        if self._changes.tensors:
            self._require_changes(name, build, memory)
        expected = self._effects
        if not expected:
            return
        own = same_names(memory, expected)
        named = own is not None
        if own is None:
            own = [memory[effect.place][1] for effect in self._effects_of(build, memory)]
        ends = [effect.after for effect in expected]
        count = len(own)
        if [tensor.shape for tensor in own] == [tensor.shape for tensor in ends]:
            begin = [effect.before for effect in expected]
            after = self._step_from(build, own, begin)
            tolerance = self._largest(agreement.tolerance_of, build, self._reference)
            updates = compare_updates(begin, after, begin, ends, tolerance=tolerance)
            if updates.reason is None:
                return
            if named:
                effect = expected[0].name
                reason = effect_differs(name, effect=effect, count=count, error=updates.error)
                raise WrongOutputError(reason, updates.error, check=CheckKind.OUTPUTS)
        self._note(CheckKind.OUTPUTS, effects_not_left(name, count=count, baseline=len(ends)))

    def _require_changes(self, name: str, build: Build, memory: Named) -> None:
        """Catches state of the baseline, such as running statistics, that a variant has not."""
        own = self._changed_by(build, [*build.state, *(tensor for _, tensor in memory)])
        if own is not None and own.is_less_than(self._changes):
            counts = {"count": own.tensors, "baseline": self._changes.tensors}
            self._note(CheckKind.OUTPUTS, effects_not_left(name, **counts))

    def _changed_by(self, build: Build, memory: Tensors) -> Amount | None:
        """Return how much of that memory a step changes, but for its output; None where it fails.

        From other values than it has: a cache that a warm-up has filled is written with the same.
        """
        made = tensors.storages(self.stepping.step(build))
        live = [
            tensor
            for tensor in memory
            if tensor.is_floating_point() and not tensors.storages([tensor]) & made
        ]
        saved = tensors.kept(live)
        for tensor in live:
            tensor.copy_(tensors.computable(tensor).mul(0.9).add(0.1))
        begin = tensors.kept(live)
        output = unless_it_fails(lambda: self.stepping.step(build, restored=False))
        pairs = zip(live, begin, strict=True)
        changed = [tensor for tensor, value in pairs if tensors.changed([tensor], [value])]
        tensors.put_back(live, saved)
        return None if output is None else Amount.of(changed)

    def _effects_of(self, build: Build, memory: Named) -> list[Effect]:
        """Return what of these a step changes, but for its output. Earlier steps had the same
        inputs: it goes on from step to step.

        What does not come out again from the same memory depends on how many steps came before,
        as a mean over all of them, or the next place of a ring: no two variants have it alike.
        """
        live = [tensor for _, tensor in memory]
        before = tensors.kept(live)
        made = tensors.storages(self.stepping.step(build))
        effects = [
            Effect(name, place, before[place], *tensors.kept([tensor]))
            for place, (name, tensor) in enumerate(memory)
            if tensors.changed([tensor], [before[place]]) and not tensors.storages([tensor]) & made
        ]
        changed = [live[effect.place] for effect in effects]
        again = self._step_from(build, changed, [effect.before for effect in effects])
        return [
            effect
            for effect, after in zip(effects, again, strict=True)
            if not tensors.changed([after], [effect.after])
        ]

    def _step_from(self, build: Build, memory: Tensors, values: Tensors) -> Tensors:
        """Return what a step makes of these values in that memory, which is then as before."""
        saved = tensors.kept(memory)
        tensors.put_back(memory, values)
        self.stepping.step(build)
        after = tensors.kept(memory)
        tensors.put_back(memory, saved)
        return after

    def _try_null_answers(self, name: str, build: Build, saved: Tensors) -> None:
        """Catches a comparison that proves nothing: what knows nothing of the step must fail it."""
        dtypes = self.stepping.dtypes(build)
        usual = tuple(agreement.tolerance_of(tensor, tensor, dtypes) for tensor in self._reference)
        key = build.work.tolerance, usual
        if key not in self._null_answers:
            self._null_answers[key] = self._passing(build, saved)
        passed, allowed = self._null_answers[key]
        answer = next((answer for answer, passes in passed.items() if passes), None)
        if answer is None:
            self._examined(name, CheckKind.NULL_ANSWERS, count=len(passed))
            return
        reason = null_answer_passes(name, answer=answer, allowed=allowed)
        kind = CheckKind.NULL_ANSWERS
        self._emit(Examined(variant=name, check=kind, ok=False, reason=reason))
        self._emit(Unchecked(variant=name, reason=reason))

    def _passing(self, build: Build, saved: Tensors) -> tuple[dict[str, bool], float]:
        """Return null answers that pass for an output, and another seed's; the tolerance."""

        def agree(answer: Tensors, reference: Tensors) -> bool:
            return self.stepping.agree(build, answer, reference).ok

        passed = passing(self._reference, saved, agree)
        if OTHER in self._others.outputs:
            again = passing(self._others.outputs[OTHER], (), agree)
            passed = {
                answer: passes and again.get(answer, True) for answer, passes in passed.items()
            }
        return passed, self.stepping.agree(build, self._reference, self._reference).tolerance

    def _note(self, kind: CheckKind, reason: Finding) -> None:
        """Something that casts doubt on what a check showed of a variant."""
        self.findings.append(reason)
        self._emit(Examined(variant=reason.variant, check=kind, reason=reason))

    def _examined(self, name: str, kind: CheckKind, *, count: int = 1, **shown: Value) -> None:
        self._emit(Examined(variant=name, check=kind, count=count, values=shown))
