"""Whether what a step returns depends on its inputs alone, or on the calls before it.

A build that was never stepped has nothing to remember. So for some values of its inputs a variant's own output is taken
from its first step, and what a timed step returns for the same values must be that one, whatever came before: this
holds for values of any kind, also for those that no author would draw, and needs no second variant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from gpulab.protocol.finding import Finding, finding
from gpulab.worker.building import tensors
from gpulab.worker.checking.values import Change

Tensors = list[torch.Tensor]

_VISIBLE = 8.0
"""Times the difference of two steps on the same values by which a change of the values must be seen."""
_OLD, _NEW = 0.25, 0.5
"""A stale output is as near as this part of the change to the old values' output, and as far from the new ones'."""
_LEAST = {torch.float64: 1e-13, torch.float32: 1e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""Rounding that two algorithms of one library may differ by, of the largest element."""
_OF_OTHERS = 0.2


@dataclass(frozen=True)
class Expected:
    """The output that a variant has for changed values of its inputs."""

    change: Change
    output: Tensors


@dataclass
class Own:
    """What a variant itself gives in this process: for its inputs as they are, and for changes of them."""

    usual: Tensors
    """Finite."""
    expected: list[Expected] = field(default_factory=list)
    asynchronous: bool = False
    """Whether its steps return before they are done."""

    def add(self, change: Change, output: Tensors) -> bool:
        """Keep a change that the output shows; whether it does."""
        if not tensors.finite(output) or not self._shows(output):
            return False
        self.expected.append(Expected(change, output))
        return True

    def _shows(self, output: Tensors) -> bool:
        return distance(output, self.usual) > _VISIBLE * _rounding(output)

    def stale(self, output: Tensors, expected: Expected) -> bool:
        """Whether an output is that of the values before the change."""
        apart = distance(expected.output, self.usual)
        return distance(output, self.usual) < _OLD * apart and distance(output, expected.output) > _NEW * apart


def distance(output: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """The largest difference of two elements, as a part of the largest one; infinite where they cannot be compared."""
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
    largest = float(b.abs().max())
    apart = float((a - b).abs().max())
    return apart / largest if largest else apart


def _rounding(output: Sequence[torch.Tensor]) -> float:
    return max((_LEAST.get(tensor.dtype, _OF_OTHERS / _VISIBLE) for tensor in output), default=0.0)


def judged(own: Own, expected: Expected, output: Tensors, agreement: tensors.Agreement, name: str) -> Finding | None:
    """What is wrong with the output of a timed step on changed values; None where it is what it should be."""
    if own.stale(output, expected):
        return finding("timed_step_is_stale", name, change=expected.change.name)
    if agreement.ok:
        return None
    return finding(
        "timed_step_is_wrong",
        name,
        error=agreement.error,
        allowed=agreement.tolerance,
        change=expected.change.name,
    )
