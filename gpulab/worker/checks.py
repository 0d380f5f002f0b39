"""Whether a variant computes what the baseline computes, proved before and after it is timed.

Equal outputs are not enough: a step that returns what its build computed is equal too, and fast. So the output is
poisoned between steps, the inputs are changed in place and everything is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from gpulab.protocol.event import Event
from gpulab.protocol.events import Checked, Examined, Unchecked
from gpulab.protocol.finding import Finding, Value, finding
from gpulab.protocol.statuses import CheckKind, CheckTime
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.checking import fresh_memory, matching, null_answers, outputs, reading
from gpulab.worker.checking.other_inputs import Inputs, OtherInputs
from gpulab.worker.checking.reading import ReadingTimes
from gpulab.worker.process.errors import RefusedError, UncheckedError, WrongOutputError, checking

_MORE_STEPS = 3
"""Steps by which an output that changed once has to show that it changes every time."""
Tensors = list[torch.Tensor]


class Checker:
    """Holds the baseline's outputs and compares each variant with them; says with `emit` what each check showed."""

    def __init__(self, builder: Builder, emit: Callable[[Event], None] | None = None) -> None:
        self._builder = builder
        self._emit: Callable[[Event], None] = emit or (lambda event: None)
        self._baseline: str | None = None
        self._inputs: list[matching.Memory] = []
        """Of the baseline, as far as it names them."""
        self._dtype: str | None = None
        self._reference: Tensors = []
        self._reads_inputs = False
        """Whether the baseline's output lies in its inputs."""
        self._later: list[Tensors] = []
        """The baseline's outputs step by step, where they change."""
        self._others = OtherInputs(builder, self.agree)
        self._times = ReadingTimes(0.0, 0.0)
        """Of the baseline."""
        self._stateful: set[str] = set()
        """Variants whose output changes from step to step."""
        self.findings: list[Finding] = []

    def before(self, name: str, build: Build, inputs: Tensors, saved: Tensors) -> Checked:
        """All checks on a build whose first step has run; `saved` are its inputs before. The baseline comes first.

        WrongOutputError, RefusedError, and UncheckedError where a step returns nothing that could be compared.
        """
        with checking(CheckKind.INPUTS):
            given = Inputs(inputs, saved, self._match(name, build, saved))
        with checking(CheckKind.OUTPUTS):
            first = self._first(name, build, inputs, saved)
        if not tensors.finite(first):  # NaN never equals itself, which is no state that changes from step to step
            return self._against_reference(name, CheckTime.BEFORE, build, first)
        fresh_memory.fill(self._builder.device, first, fresh_memory.PATTERNS[1])
        live, times = reading.timed_step(self._builder, build)
        usual = self._usual(name, build, first)
        repeated = self.agree(build, live, usual)
        if not repeated.ok:
            return self._moving(name, build, first, tensors.kept(live), repeated)
        outputs.spoil(build, live, inputs)
        del live
        fresh_memory.fill(self._builder.device, first, fresh_memory.PATTERNS[0])
        again, more_times = reading.timed_step(self._builder, build)
        times += more_times
        if not self.agree(build, again, usual).ok:
            self._tell_apart(build, usual)
        self._examined(name, CheckKind.DETERMINISM, patterns=len(fresh_memory.PATTERNS), count=3)
        checked = self._against_reference(name, CheckTime.BEFORE, build, first)
        self._note_cap(name, build, first)
        lies_in = outputs.lies_in(again, inputs)
        del again
        if name == self._baseline:
            self._reads_inputs, self._times = lies_in, times
            self._others.find(build, given, first)
            if not self._others:
                self.findings.append(finding("output_ignores_change" if inputs else "no_inputs_named", name))
        elif lies_in and not self._reads_inputs:
            raise WrongOutputError(finding("output_is_its_input"), check=CheckKind.OUTPUTS)
        else:
            self._others.check(build, given, first)
        self._check_reading(name, build, given, times)
        self._try_null_answers(name, build, saved)
        return checked

    @property
    def stateful(self) -> set[str]:
        """Variants whose output changes from step to step."""
        return self._stateful

    @property
    def baseline(self) -> str | None:
        """The variant that the others are compared with."""
        return self._baseline

    @property
    def reference(self) -> Tensors:
        """The baseline's output in this process; empty before it is known."""
        return self._reference

    @property
    def dtype(self) -> str | None:
        """The baseline's declared one."""
        return self._dtype

    def resume(self, baseline: str, dtype: str | None, stateful: Iterable[str]) -> None:
        """Go on from what an earlier process found out; the baseline's output is this one's own."""
        self._baseline, self._dtype, self._stateful = baseline, dtype, set(stateful)

    def still(self, name: str, build: Build) -> None:
        """Once the build has been stepped for a while: WrongOutputError where its output is another by now."""
        if name not in self._stateful:
            self._against_reference(name, CheckTime.BEFORE, build, self._step(build))

    def after(self, name: str, build: Build, rebuild: Callable[[], Build]) -> Checked:
        """The same outputs again, once everything has been timed."""
        if name not in self._stateful:
            return self._against_reference(name, CheckTime.AFTER, build, self._step(build))
        fresh = rebuild()
        try:
            self._builder.first_step(fresh)
            self._step(fresh)
            return self._against_reference(name, CheckTime.AFTER, fresh, self._step(fresh))
        finally:
            fresh.close()

    def agree(self, build: Build, output: Tensors, reference: Tensors) -> tensors.Agreement:
        """By the tolerance of a build, and of both dtypes that are declared."""
        return tensors.agree(output, reference, tolerance=build.work.tolerance, dtypes=(build.work.dtype, self._dtype))

    def _match(self, name: str, build: Build, inputs: Tensors) -> matching.Matching:
        """Compare the inputs with the baseline's. RefusedError where they are others."""
        if self._baseline is None:
            self._baseline, self._dtype = name, build.work.dtype
            self._inputs = [matching.Memory(tensor) for tensor in inputs]
        if name == self._baseline:
            if not inputs:
                skipped = finding("no_inputs_named", name)
                self._emit(Examined(variant=name, check=CheckKind.INPUTS, skipped=skipped))
            return matching.identity(inputs)
        if self._inputs and not inputs:
            raise RefusedError(finding("inputs_not_named"))
        if not self._inputs:
            return matching.Matching(tuple(matching.Matched(matching.Relation.OTHER) for _ in inputs), 0)
        dtypes = (build.work.dtype, self._dtype)
        loosest = max(tensors.tolerance_of(tensor, tensor, dtypes) for tensor in inputs)
        matched = matching.match(self._inputs, inputs, loosest)
        doubt = finding("inputs_not_matched", name, missing=matched.missing, inputs=matched.baseline)
        self._emit(
            Examined(
                variant=name,
                check=CheckKind.INPUTS,
                values={"inputs": len(inputs), "baseline": matched.baseline, "allowed": loosest},
                reason=doubt if matched.missing else None,
            )
        )
        return matched

    def _first(self, name: str, build: Build, inputs: Tensors, saved: Tensors) -> Tensors:
        fresh_memory.fill(self._builder.device, (), fresh_memory.PATTERNS[0])
        first = tensors.kept(self._step(build))
        if tensors.changed(inputs, saved):
            raise WrongOutputError(finding("changes_inputs"))
        if not first or (name == self._baseline and not any(tensor.numel() for tensor in first)):
            raise UncheckedError(finding("returns_nothing", name))
        return first

    def _usual(self, name: str, build: Build, first: Tensors) -> Tensors:
        """What each further step has to agree with: two that are right differ by up to twice the tolerance."""
        if name == self._baseline or self._baseline in self._stateful or not self._reference:
            return first
        return self._reference if self.agree(build, first, self._reference).ok else first

    def _step(self, build: Build) -> Tensors:
        """One step from restored state; returns the live output tensors."""
        returned, _ = outputs.step(self._builder, build)
        return outputs.read(build, returned)

    def _moving(self, name: str, build: Build, first: Tensors, second: Tensors, repeated: tensors.Agreement) -> Checked:
        """An output that changed: no state is named, or other state than it depends on. It has to change every time.

        Three steps since the build, and so are the re-check's.
        """
        self._stateful.add(name)
        code = "state_not_restored" if build.state else "state_not_named"
        place = {"output": repeated.tensor + 1, "outputs": len(first), "error": repeated.error}
        self.findings.append(finding(code, name, **place))
        if name != self._baseline and self._baseline not in self._stateful:
            self._against_reference(name, CheckTime.BEFORE, build, first)
        later = [first, second]
        for step in range(_MORE_STEPS):
            later.append(tensors.kept(self._step(build)))
            if self.agree(build, later[-1], later[-2]).ok:
                raise RefusedError(finding("output_wobbles", step=step + 3), check=CheckKind.DETERMINISM)
        if name == self._baseline:
            self._later = later
        for output, expected in zip(later, self._later, strict=False):
            agreement = self.agree(build, output, expected)
            if agreement.reason:
                raise WrongOutputError(agreement.reason, agreement.error)
        reason = finding(code, name, **place)
        self._emit(Examined(variant=name, check=CheckKind.DETERMINISM, count=len(later), reason=reason))
        return self._against_reference(name, CheckTime.BEFORE, build, second)

    def _tell_apart(self, build: Build, usual: Tensors) -> None:
        """After an output was poisoned, and memory filled, another one came: which of the two it was."""
        if self.agree(build, self._step(build), usual).ok:
            raise WrongOutputError(finding("depends_on_fresh_memory"), check=CheckKind.DETERMINISM)
        raise WrongOutputError(finding("does_not_write_its_output"))

    def _against_reference(self, name: str, when: CheckTime, build: Build, output: Tensors) -> Checked:
        with checking(CheckKind.OUTPUTS):
            if name == self._baseline and not self._reference:
                self._set_reference(output)
            agreement = self.agree(build, output, self._reference)
            if agreement.reason:
                raise WrongOutputError(agreement.reason, agreement.error)
        self._examined(
            name, CheckKind.OUTPUTS, error=agreement.error, allowed=agreement.tolerance, cap=self._cap(build, output)
        )
        return Checked(variant=name, when=when, ok=True, error=agreement.error, tolerance=agreement.tolerance)

    def _cap(self, build: Build, output: Tensors) -> float:
        dtypes = (build.work.dtype, self._dtype)
        pairs = zip(output, self._reference, strict=False)
        return max((tensors.cap_of(actual, expected, dtypes) for actual, expected in pairs), default=0.0)

    def _note_cap(self, name: str, build: Build, output: Tensors) -> None:
        declared, cap = build.work.tolerance, self._cap(build, output)
        if declared is not None and declared > cap:
            self.findings.append(finding("tolerance_capped", name, declared=declared, cap=cap))

    def _set_reference(self, output: Tensors) -> None:
        reference = tensors.kept(output)
        if not tensors.finite(reference):
            raise WrongOutputError(finding("baseline_not_finite"))
        if not any(bool((tensor != 0).any()) for tensor in reference):
            self.findings.append(finding("baseline_is_zeros"))
        self._reference = reference

    def _check_reading(self, name: str, build: Build, inputs: Inputs, times: ReadingTimes) -> None:
        """Nothing of the step's work may be left to the reading of its output."""
        with checking(CheckKind.CONTEXT):
            if not self._reads_inputs:
                self._others.check_reading(build, inputs)
            reading.require_quick(self._builder, build, times, self._times)
        context = build.work.context is not None
        self._examined(name, CheckKind.CONTEXT, output_s=times.read_s, step_s=times.step_s, context=context)

    def _try_null_answers(self, name: str, build: Build, saved: Tensors) -> None:
        """What knows nothing of the step must fail the check, or the check proves nothing."""

        def agree(answer: Tensors, reference: Tensors) -> bool:
            return self.agree(build, answer, reference).ok

        passed = null_answers.passing(self._reference, saved, agree)
        for output in self._others.outputs:
            again = null_answers.passing(output, (), agree)
            passed = {answer: passes and again.get(answer, True) for answer, passes in passed.items()}
        if self._inputs and not self._others:
            reason = finding("output_ignores_change", name)
            self._emit(Examined(variant=name, check=CheckKind.INPUTS, reason=reason))
            self._emit(Unchecked(variant=name, reason=reason))
        allowed = self.agree(build, self._reference, self._reference).tolerance
        answer = next((answer for answer, passes in passed.items() if passes), None)
        if answer is not None:
            reason = finding("null_answer_passes", name, answer=answer, allowed=allowed)
            self._emit(Examined(variant=name, check=CheckKind.NULL_ANSWERS, ok=False, count=len(passed), reason=reason))
            self._emit(Unchecked(variant=name, reason=reason))
        else:
            self._examined(name, CheckKind.NULL_ANSWERS, count=len(passed), allowed=allowed)

    def _examined(self, name: str, kind: CheckKind, *, count: int = 1, **values: Value) -> None:
        self._emit(Examined(variant=name, check=kind, count=count, values=values))
