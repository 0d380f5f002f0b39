"""Values for the inputs of a build, and whether what a step returns depends on them alone or on the
calls before it.

A build that was never stepped has nothing to remember. So a variant's own output for the values of
another seed is taken from checked steps, and what a timed step returns for the same values must be
that one, whatever came before. It takes no arithmetic, and so values of any dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch

from gpulab.engine.build import tensors

Tensors = list[torch.Tensor]

OTHER = "another seed"
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


@dataclass
class Own:
    """The outputs of a variant in this process: for its inputs as they are, and for other `values`
    of them, if it shows any.
    """

    usual: Tensors
    """Without NaN."""
    asynchronous: bool = False
    """Whether its steps return before they are done."""
    values: Tensors = field(default_factory=list)
    expected: Tensors = field(default_factory=list)

    def add(self, values: Tensors, output: Tensors) -> bool:
        """Keep values that the output shows; whether it does."""
        shows = distance(output, self.usual) > _VISIBLE * _rounding(output)
        if tensors.has_nan(output) or not shows:
            return False
        self.values = values
        self.expected = output
        return True

    def stale(self, output: Tensors) -> bool:
        """Return whether an output is that of the values before the change."""
        apart = distance(self.expected, self.usual)
        return (
            distance(output, self.usual) < _OLD * apart
            and distance(output, self.expected) > _NEW * apart
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


Write = Callable[[], None]


def exchange(inputs: Tensors, values: Tensors) -> tuple[Write, Write]:
    """(writes values into the inputs, puts back what is there now)."""
    put_back = partial(tensors.put_back, inputs)
    return partial(put_back, values), partial(put_back, tensors.kept(inputs))


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
    kinds = [[(tensor.shape, tensor.dtype) for tensor in part] for part in (inputs, others)]
    return tensors.changed(inputs, others) if kinds[0] == kinds[1] else None


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


def case(name: str, inputs: Sequence[torch.Tensor]) -> Tensors:
    """The values of the inputs in a case of that name."""
    return [
        CASES[name](tensors.computable(tensor)).to(tensor.dtype)
        if tensor.is_floating_point() and tensor.numel()
        else tensor.clone()
        for tensor in inputs
    ]
