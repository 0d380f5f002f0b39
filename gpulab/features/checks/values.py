"""Values for the inputs of a build, and whether what a step returns depends on them alone or on the
calls before it.

A build that was never stepped has nothing to remember. So a variant's own output for the values of
another seed is taken from checked steps, and what a timed step returns for the same values must be
that one, whatever came before. It takes no arithmetic, and so values of any dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from gpulab.core.findings import Finding
from gpulab.engine.build import tensors
from gpulab.engine.build.agreement import Agreement
from gpulab.features.checks.findings import timed_step_is_stale, timed_step_is_wrong

Tensors = list[torch.Tensor]

_VISIBLE = 8.0
"""Times the difference of two steps on the same values by which a change must be seen."""
_OLD = 0.25
_NEW = 0.5
"""A stale output is this near to the old values' output, and this far from the new ones'."""
_LEAST = {
    torch.float64: 1e-13,
    torch.complex128: 1e-13,
    torch.float32: 1e-6,
    torch.complex64: 1e-6,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}
"""Rounding that two algorithms of one library may differ by, of the largest element."""
_DEFAULT = 0.2


@dataclass(frozen=True, eq=False)
class Expected:
    """The output that a variant has for changed values of its inputs."""

    change: AllValues
    output: Tensors


@dataclass
class Own:
    """The outputs of a variant in this process: for its inputs as they are, and for changes."""

    usual: Tensors
    """Without NaN."""
    expected: list[Expected] = field(default_factory=list)
    asynchronous: bool = False
    """Whether its steps return before they are done."""

    def add(self, change: AllValues, output: Tensors) -> bool:
        """Keep a change that the output shows; whether it does."""
        if tensors.has_nan(output) or not self._shows(output):
            return False
        self.expected.append(Expected(change, output))
        return True

    def _shows(self, output: Tensors) -> bool:
        return distance(output, self.usual) > _VISIBLE * _rounding(output)

    def stale(self, output: Tensors, expected: Expected) -> bool:
        """Return whether an output is that of the values before the change."""
        apart = distance(expected.output, self.usual)
        return (
            distance(output, self.usual) < _OLD * apart
            and distance(output, expected.output) > _NEW * apart
        )


def distance(output: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """The largest difference, as a part of the largest element; infinite where incomparable."""
    if [tensor.numel() for tensor in output] != [tensor.numel() for tensor in other]:
        return float("inf")
    pairs = zip(*tensors.joined(output, other), strict=True)
    return max((_distance(*pair) for pair in pairs), default=0.0)


def _distance(output: torch.Tensor, other: torch.Tensor) -> float:
    if not output.numel():
        return 0.0
    output = output.to(other.device)
    if output.dtype == other.dtype and torch.equal(output.reshape(-1), other.reshape(-1)):
        return 0.0
    if not (output.is_floating_point() or output.is_complex()):
        return float((output.reshape(-1) != other.reshape(-1)).any())
    a, b = (tensors.computable(tensor).reshape(-1) for tensor in (output, other))
    finite = torch.isfinite(b)
    largest = float(torch.where(finite, b.abs(), 0.0).max())
    apart = float(torch.where(a == b, 0.0, (a - b).abs()).max())
    return apart / largest if largest else apart


def _rounding(output: Sequence[torch.Tensor]) -> float:
    return max((_LEAST.get(tensor.dtype, _DEFAULT / _VISIBLE) for tensor in output), default=0.0)


def judged(
    own: Own, expected: Expected, output: Tensors, agreement: Agreement, name: str
) -> Finding | None:
    """Return what is wrong with a timed step's output on changed values; None where nothing is."""
    if own.stale(output, expected):
        return timed_step_is_stale(name, change=expected.change.name)
    if agreement.ok:
        return None
    return timed_step_is_wrong(
        name, error=agreement.error, allowed=agreement.tolerance, change=expected.change.name
    )


Write = Callable[[], None]
Kind = tuple[torch.Size, torch.dtype]


@dataclass(frozen=True)
class AllValues:
    """Values of every input, as a build made them or a case says."""

    name: str
    values: Sequence[torch.Tensor]

    def on(self, inputs: Sequence[torch.Tensor]) -> tuple[Write, Write]:
        """(writes them, puts back what is there now)."""
        saved = tensors.kept(inputs)
        return lambda: tensors.put_back(inputs, self.values), lambda: tensors.put_back(
            inputs, saved
        )


def flipped(tensor: torch.Tensor) -> torch.Tensor | None:
    """Other values where every seed gives the same; None of whole numbers, maybe places."""
    if tensor.dtype == torch.bool:
        return ~tensor
    if not (tensor.is_floating_point() or tensor.is_complex()) or not tensor.dim():
        return None
    if is_zero(tensor):
        some = torch.linspace(-1, 1, tensor.numel(), device=tensor.device)
        return some.reshape(tensor.shape).to(tensor.dtype)
    return tensors.computable(tensor).roll(1).mul(0.9).to(tensor.dtype)


def is_zero(tensor: torch.Tensor) -> bool:
    return not bool(tensors.computable(tensor).any())


def differ(inputs: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool | None:
    """Return whether any element differs; None where shapes do, so that no value can be copied."""
    if [kind(tensor) for tensor in inputs] != [kind(tensor) for tensor in others]:
        return None
    return tensors.changed(inputs, others)


def kind(tensor: torch.Tensor) -> Kind:
    """Return what two tensors share of which one may take the values of the other."""
    return tensor.shape, tensor.dtype


_RARE = 0.01
"""The part of the elements that a case makes infinite or NaN."""


def _rare(values: torch.Tensor) -> torch.Tensor:
    """The smallest elements: the same in every layout."""
    flat = values.reshape(-1)
    count = max(1, int(_RARE * flat.numel()))
    return values <= flat.kthvalue(count).values


CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "zeros": torch.zeros_like,
    "negative": lambda values: -values.abs(),
    "signs": torch.neg,
    "scales": lambda values: values * 1000,
    "infinities": lambda values: torch.where(_rare(values), -torch.inf, values),
    "nan": lambda values: torch.where(_rare(values), torch.nan, values),
    "ties": lambda values: (values * 4).round() / 4,
}
"""What a case does with floating-point inputs, by value alone: alike in any layout."""
FREE = ("zeros", "signs", "scales", "infinities")


def case(name: str, inputs: Sequence[torch.Tensor]) -> AllValues:
    """The values of the inputs in a case of that name."""
    change = CASES[name]
    values = [
        _changed(tensor, change) if tensor.is_floating_point() else tensor.clone()
        for tensor in inputs
    ]
    return AllValues(name, values)


def _changed(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    wide = tensors.computable(tensor)
    return change(wide).to(tensor.dtype) if tensor.numel() else tensor.clone()
