"""Whether a variant computes what the baseline computes, proved before and after it is timed.

Equal outputs are not enough: a step that returns what its build computed is equal too, and fast. So the output is
poisoned between steps, the inputs are changed in place and everything is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from gpulab.protocol.events import Checked
from gpulab.protocol.finding import Finding, finding
from gpulab.protocol.statuses import CheckTime
from gpulab.worker.building import tensors
from gpulab.worker.building.build import Build, Builder
from gpulab.worker.process.errors import RefusedError, UncheckedError, WrongOutputError

_CHANGES: tuple[Callable[[Sequence[torch.Tensor]], None], ...] = (tensors.halve, tensors.roll)


class Checker:
    """Holds the baseline's outputs, on the host, and compares each variant with them."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._baseline: str | None = None
        self._named_inputs = False
        self._dtype: str | None = None
        self._reference: list[torch.Tensor] = []
        self._changed: tuple[int, list[torch.Tensor]] | None = None
        """Which of `_CHANGES` was made to the inputs, and the baseline's output then."""
        self._stateful: set[str] = set()
        """Variants whose output changes from step to step."""
        self.findings: list[Finding] = []

    def before(self, name: str, build: Build, inputs: list[torch.Tensor], saved: list[torch.Tensor]) -> Checked:
        """All checks on a build whose first step has run; `saved` are its inputs before. The baseline comes first.

        WrongOutputError, RefusedError, and UncheckedError where a step returns nothing that could be compared.
        """
        if self._baseline is None:
            self._baseline, self._named_inputs, self._dtype = name, bool(inputs), build.work.dtype
        elif self._named_inputs and not inputs:
            raise RefusedError(finding("inputs_not_named"))
        first = self._output(build)
        if tensors.changed(inputs, saved):
            raise WrongOutputError(finding("changes_inputs"))
        if not first or (name == self._baseline and not any(tensor.numel() for tensor in first)):
            raise UncheckedError(finding("returns_nothing", name))
        if not tensors.finite(first):  # NaN never equals itself, which is no state that changes from step to step
            return self._against_reference(name, CheckTime.BEFORE, build, first)
        second = self._step(build)  # compared where it is: only what must outlive a step is copied to the host
        repeated = self._agree(build, second, first)
        if not repeated.ok:
            # No state is named, or other state than the output depends on: three steps since the build, and so
            # are the re-check's.
            self._stateful.add(name)
            self.findings.append(
                finding(
                    "state_not_restored" if build.state else "state_not_named",
                    name,
                    output=repeated.tensor + 1,
                    outputs=len(first),
                    error=repeated.error,
                )
            )
            return self._against_reference(name, CheckTime.BEFORE, build, _on_host(second))
        del second
        self._check_poisoned(build, first, inputs)
        checked = self._against_reference(name, CheckTime.BEFORE, build, first)
        self._check_other_inputs(name, build, inputs, saved, first)
        return checked

    @property
    def stateful(self) -> set[str]:
        """Variants whose output changes from step to step."""
        return self._stateful

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

    def _step(self, build: Build) -> list[torch.Tensor]:
        """One step from restored state; returns the live output tensors."""
        build.restore()
        returned, _ = self._builder.step(build)
        output: Any = build.work.output
        if output is None:
            output = returned
        return tensors.leaves(output() if callable(output) and not hasattr(output, "__dlpack__") else output)

    def _output(self, build: Build) -> list[torch.Tensor]:
        return _on_host(self._step(build))

    def _check_poisoned(self, build: Build, expected: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
        live = self._step(build)
        shared = tensors.storages([*inputs, *build.state])
        tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & shared])
        del live
        if not self._agree(build, self._step(build), expected).ok:
            raise WrongOutputError(finding("does_not_write_its_output"))

    def _against_reference(self, name: str, when: CheckTime, build: Build, output: list[torch.Tensor]) -> Checked:
        if name == self._baseline and not self._reference:
            self._set_reference(output)
        agreement = self._agree(build, output, self._reference)
        if agreement.reason:
            raise WrongOutputError(agreement.reason, agreement.error)
        return Checked(variant=name, when=when, ok=True, error=agreement.error, tolerance=agreement.tolerance)

    def _set_reference(self, output: list[torch.Tensor]) -> None:
        if not tensors.finite(output):
            raise WrongOutputError(finding("baseline_not_finite"))
        if not any(bool((tensor != 0).any()) for tensor in output):
            self.findings.append(finding("baseline_is_zeros"))
        self._reference = output

    def _check_other_inputs(
        self, name: str, build: Build, inputs: list[torch.Tensor], saved: list[torch.Tensor], usual: list[torch.Tensor]
    ) -> None:
        """Change the inputs in place and compare with the baseline on inputs changed alike: a stale result stays."""
        if name == self._baseline:
            self._change_baseline_inputs(name, build, inputs, saved, usual)
        elif self._changed is not None:
            change, expected = self._changed
            output = self._changed_output(build, _CHANGES[change], inputs, saved)
            agreement = self._agree(build, output, expected)
            if agreement.reason is None:
                return
            if tensors.agree(output, usual, tolerance=0.0).ok:
                raise WrongOutputError(finding("ignores_its_inputs"), agreement.error)
            values = {**agreement.reason.values, "other_inputs": True}
            raise WrongOutputError(Finding(code=agreement.reason.code, values=values), agreement.error)

    def _change_baseline_inputs(
        self, name: str, build: Build, inputs: list[torch.Tensor], saved: list[torch.Tensor], usual: list[torch.Tensor]
    ) -> None:
        """Find a change of the inputs that the baseline's output follows, and keep that output."""
        for index, change in enumerate(_CHANGES if inputs else ()):
            try:
                output = self._changed_output(build, change, inputs, saved)
            except (RuntimeError, ValueError, IndexError):
                continue  # the values are no longer valid, as with a matrix that must be positive definite
            if tensors.finite(output) and not self._agree(build, output, usual).ok:
                self._changed = index, output
                return
        self.findings.append(finding("output_ignores_change" if inputs else "no_inputs_named", name))

    def _changed_output(
        self,
        build: Build,
        change: Callable[[Sequence[torch.Tensor]], None],
        inputs: list[torch.Tensor],
        saved: list[torch.Tensor],
    ) -> list[torch.Tensor]:
        change(inputs)
        try:
            return self._output(build)
        finally:
            tensors.put_back(inputs, saved)

    def _agree(self, build: Build, output: list[torch.Tensor], reference: list[torch.Tensor]) -> tensors.Agreement:
        return tensors.agree(output, reference, tolerance=build.work.tolerance, dtypes=(build.work.dtype, self._dtype))


def _on_host(live: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().to("cpu", copy=True) for tensor in live]
