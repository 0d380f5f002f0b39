"""Whether a variant computes what the baseline computes, proved before and after it is timed.

Equal outputs are not enough: a step that returns what its build computed is equal too, and fast. So the
output is poisoned between steps, the inputs are changed in place and everything is computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import torch

from gpulab.model.events import Checked
from gpulab.worker import settings, tensors
from gpulab.worker.build import Build, Builder, RefusedError
from gpulab.worker.compiled import mark_step

_CHANGES: tuple[Callable[[Sequence[torch.Tensor]], None], ...] = (tensors.roll, tensors.halve)


class WrongOutputError(Exception):
    """The output is not the baseline's; `error` is the relative Frobenius error where there is one."""

    def __init__(self, reason: str, error: float | None = None) -> None:
        super().__init__(reason)
        self.error = error


class Checker:
    """Holds the baseline's outputs, on the host, and compares each variant with them."""

    def __init__(self, builder: Builder, wait: Callable[[], None] | None) -> None:
        self._builder = builder
        self._wait = wait
        self._reference: list[torch.Tensor] | None = None
        self._dtype: str | None = None
        self._changed: dict[int, list[torch.Tensor]] = {}
        self._baseline: str | None = None
        self._named = False
        self._loose: set[str] = set()
        self.notices: list[str] = []

    def first_step(self, build: Build) -> float:
        """Seconds of the very first step of a build: what a user waits for once."""
        started = perf_counter()
        self._step(build)
        return perf_counter() - started

    def before(self, name: str, build: Build) -> Checked:
        """All checks on a build whose first step has run. The first call sets the reference."""
        inputs = tensors.leaves(build.work.inputs)
        saved = tensors.copies(inputs)
        if self._baseline is None:
            self._baseline, self._named = name, bool(inputs)
        elif self._named and not inputs:
            raise RefusedError("it names no inputs where the baseline does, so a stale result would go unnoticed")
        first = self._output(build)
        if tensors.changed(inputs, saved):
            raise WrongOutputError("the step changes its inputs: name them as state, or write elsewhere")
        second = self._output(build)
        exactness = self._tolerance(build, first)
        if not tensors.agree(second, first, exactness).ok:
            # No state is named, or other state than the output depends on: three steps since the build, and so
            # are the re-check's.
            self._loose.add(name)
            self.notices.append(f"{name}: a second step changes the output; name its state to have all checks")
            return self._against_reference(name, "before", build, second)
        self._poisoned(build, first, exactness, inputs)
        found = self._against_reference(name, "before", build, first)
        self._with_other_inputs(name, build, inputs, saved, first)
        return found

    def still(self, name: str, build: Build) -> None:
        """Once the build has been stepped for a while: WrongOutputError where its output is another by now."""
        if name not in self._loose:
            self._against_reference(name, "before", build, self._output(build))

    def after(self, name: str, build: Build, rebuild: Callable[[], Build]) -> Checked:
        """The same outputs again, once everything has been timed."""
        if name not in self._loose:
            return self._against_reference(name, "after", build, self._output(build))
        fresh = rebuild()
        try:
            self._step(fresh)
            self._output(fresh)
            return self._against_reference(name, "after", fresh, self._output(fresh))
        finally:
            fresh.close()

    def _step(self, build: Build) -> list[torch.Tensor]:
        """One step from restored state, seeded; returns the live output tensors."""
        build.restore()
        self._builder.seed()
        mark_step()
        before = settings.read()
        try:
            with build.context():
                inside = settings.read()
                returned = build.work.step()
                self._builder.refuse(settings.put_back(inside), "stepping")
        finally:
            settings.put_back(before)
        if self._wait:
            self._wait()
        output: Any = build.work.output
        if output is None:
            output = returned
        return tensors.leaves(output() if callable(output) and not hasattr(output, "__dlpack__") else output)

    def _output(self, build: Build) -> list[torch.Tensor]:
        return [tensor.detach().to("cpu", copy=True) for tensor in self._step(build)]

    def _poisoned(
        self, build: Build, expected: list[torch.Tensor], tolerance: float, inputs: list[torch.Tensor]
    ) -> None:
        live = self._step(build)
        kept = tensors.storages([*inputs, *build.state])
        tensors.poison([tensor for tensor in live if not tensors.storages([tensor]) & kept])
        del live
        if not tensors.agree(self._output(build), expected, tolerance).ok:
            raise WrongOutputError("the step does not write all of its output: poisoned values came back")

    def _against_reference(self, name: str, when: str, build: Build, output: list[torch.Tensor]) -> Checked:
        if self._reference is None:
            self._set_reference(output, build.work.dtype)
        reference = self._reference or []
        tolerance = self._tolerance(build, output)
        found = tensors.agree(output, reference, tolerance)
        if not found.ok:
            raise WrongOutputError(found.reason or "the output differs", found.error)
        return Checked(variant=name, when=when, ok=True, error=found.error, tolerance=tolerance)

    def _set_reference(self, output: list[torch.Tensor], dtype: str | None) -> None:
        if not output:
            raise WrongOutputError(
                "the baseline's step returns nothing to check: return its output, or name Work(output=...)"
            )
        if any(not bool(torch.isfinite(tensor).all()) for tensor in output):
            raise WrongOutputError("the baseline's own output holds NaN or infinity")
        if not any(bool(tensor.any()) for tensor in output):
            self.notices.append("the baseline's output is all zeros: the check proves little")
        self._reference, self._dtype = output, dtype

    def _with_other_inputs(
        self, name: str, build: Build, inputs: list[torch.Tensor], saved: list[torch.Tensor], usual: list[torch.Tensor]
    ) -> None:
        """Change the inputs in place and compare with the baseline on inputs changed alike: a stale result stays."""
        baseline = name == self._baseline
        for index, change in enumerate(_CHANGES):
            if not baseline and index not in self._changed:
                continue
            if not inputs:
                break
            change(inputs)
            try:
                output = self._output(build)
            finally:
                tensors.put_back(inputs, saved)
            if baseline:
                if tensors.agree(output, usual, self._tolerance(build, output)).ok:
                    continue
                self._changed[index] = output
                return
            found = tensors.agree(output, self._changed[index], self._tolerance(build, output))
            if not found.ok:
                stale = tensors.agree(output, usual, 0.0).ok
                why = "the output does not follow its inputs: computed in the build?" if stale else found.reason
                raise WrongOutputError(f"with other values in the inputs: {why}", found.error)
            return
        if baseline and not inputs:
            self.notices.append(f"{name}: names no inputs, so a result computed in the build would go unnoticed")
        elif baseline:
            self.notices.append(f"{name}: its output does not depend on its inputs, so a stale one would go unnoticed")

    def _tolerance(self, build: Build, output: list[torch.Tensor]) -> float:
        if build.work.tolerance is not None:
            return build.work.tolerance
        return tensors.tolerance_of([*output, *(self._reference or [])], build.work.dtype, self._dtype)
