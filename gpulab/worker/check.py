"""Whether a variant computes what the baseline computes, proved before and after it is timed.

Equal outputs are not enough: a step that returns what its build computed is equal too, and fast. So the
output is poisoned between steps, the inputs are changed in place and everything is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpulab.model.events import Checked
from gpulab.worker import tensors
from gpulab.worker.build import Build, Builder, RefusedError

_CHANGES: tuple[Callable[[Sequence[torch.Tensor]], None], ...] = (tensors.halve, tensors.roll)


class WrongOutputError(Exception):
    """The output is not the baseline's; `error` is the relative Frobenius error where there is one."""

    def __init__(self, reason: str, error: float | None = None) -> None:
        super().__init__(reason)
        self.error = error


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
        self._loose: set[str] = set()
        self.notices: list[str] = []

    def before(self, name: str, build: Build, inputs: list[torch.Tensor], saved: list[torch.Tensor]) -> Checked:
        """All checks on a build whose first step has run; `saved` are its inputs before. The baseline comes first."""
        if self._baseline is None:
            self._baseline, self._named_inputs, self._dtype = name, bool(inputs), build.work.dtype
        elif self._named_inputs and not inputs:
            raise RefusedError("it names no inputs where the baseline does, so a stale result would go unnoticed")
        first = self._output(build)
        if tensors.changed(inputs, saved):
            raise WrongOutputError("the step changes its inputs: name them as state, or write elsewhere")
        second = self._step(build)  # compared where it is: only what must outlive a step is copied to the host
        if not self._agree(build, second, first).ok:
            # No state is named, or other state than the output depends on: three steps since the build, and so
            # are the re-check's.
            self._loose.add(name)
            self.notices.append(f"{name}: a second step changes the output; name its state to have all checks")
            return self._against_reference(name, "before", build, _kept(second))
        del second
        self._poisoned(build, first, inputs)
        found = self._against_reference(name, "before", build, first)
        self._with_other_inputs(name, build, inputs, saved, first)
        return found

    def still(self, name: str, build: Build) -> None:
        """Once the build has been stepped for a while: WrongOutputError where its output is another by now."""
        if name not in self._loose:
            self._against_reference(name, "before", build, self._step(build))

    def after(self, name: str, build: Build, rebuild: Callable[[], Build]) -> Checked:
        """The same outputs again, once everything has been timed."""
        if name not in self._loose:
            return self._against_reference(name, "after", build, self._step(build))
        fresh = rebuild()
        try:
            self._builder.first_step(fresh)
            self._step(fresh)
            return self._against_reference(name, "after", fresh, self._step(fresh))
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
        return _kept(self._step(build))

    def _poisoned(self, build: Build, expected: list[torch.Tensor], inputs: list[torch.Tensor]) -> None:
        live = self._step(build)
        kept = tensors.storages([*inputs, *build.state])
        tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & kept])
        del live
        if not self._agree(build, self._step(build), expected).ok:
            raise WrongOutputError("the step does not write all of its output: poisoned values came back")

    def _against_reference(self, name: str, when: str, build: Build, output: list[torch.Tensor]) -> Checked:
        if name == self._baseline and not self._reference:
            self._set_reference(output)
        found = self._agree(build, output, self._reference)
        if not found.ok:
            raise WrongOutputError(found.reason, found.error)
        return Checked(variant=name, when=when, ok=True, error=found.error, tolerance=found.tolerance)

    def _set_reference(self, output: list[torch.Tensor]) -> None:
        if not output:
            raise WrongOutputError("the step returns nothing to check: return its output, or name Work(output=...)")
        if not tensors.finite(output):
            raise WrongOutputError("the baseline's own output holds NaN or infinity")
        if not any(bool((tensor != 0).any()) for tensor in output):
            self.notices.append("the baseline's output is all zeros: the check proves little")
        self._reference = output

    def _with_other_inputs(
        self, name: str, build: Build, inputs: list[torch.Tensor], saved: list[torch.Tensor], usual: list[torch.Tensor]
    ) -> None:
        """Change the inputs in place and compare with the baseline on inputs changed alike: a stale result stays."""
        if name == self._baseline:
            self._change_the_baseline_s(name, build, inputs, saved, usual)
        elif self._changed is not None:
            change, expected = self._changed
            output = self._changed_output(build, _CHANGES[change], inputs, saved)
            found = self._agree(build, output, expected)
            if not found.ok:
                stale = tensors.agree(output, usual, tolerance=0.0).ok
                why = "the output does not follow its inputs: computed in the build?" if stale else found.reason
                raise WrongOutputError(f"with other values in the inputs: {why}", found.error)

    def _change_the_baseline_s(
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
        why = "its output does not follow a change of its inputs" if inputs else "names no inputs"
        self.notices.append(f"{name}: {why}, so a result computed in the build would go unnoticed")

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


def _kept(live: list[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.detach().to("cpu", copy=True) for tensor in live]
