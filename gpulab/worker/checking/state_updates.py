"""What steps change in named state: a variant has to change what the baseline changes, about as much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gpulab.protocol.finding import Finding, finding
from gpulab.worker.building import tensors

_ALLOWED = 0.4
"""Mean relative error of updates: an optimizer's first ones have the sign of a gradient, which may be noise. One of two
steps left out is an error of 0.5."""
_ALIKE = 5e-2
_FEWEST, _FEWEST_CHANGED = 16, 4


@dataclass(frozen=True)
class Updates:
    """State tensors that were compared, the mean relative error of their updates, and what is wrong with them."""

    compared: int
    error: float | None = None
    reason: Finding | None = None


State = Sequence[torch.Tensor]


def compare(before: State, after: State, baseline_before: State, baseline_after: State) -> Updates:
    """A variant's state before and after some steps against the baseline's. Only what begins alike is compared."""
    errors: list[float] = []
    moved = expected_moved = 0
    for own, other in _pairs(before, baseline_before):
        expected = _wide(baseline_after[other]) - _wide(baseline_before[other])
        actual = (_wide(after[own]) - _wide(before[own])).reshape(expected.shape).to(expected.device)
        changed = int(expected.count_nonzero())
        if not changed or not bool(torch.isfinite(expected).all()):
            continue
        unchanged = not bool(actual.any())
        same_dtype = after[own].dtype == baseline_after[other].dtype
        if unchanged and same_dtype and changed >= _FEWEST_CHANGED and expected.numel() >= _FEWEST:
            missing = finding("state_not_updated", tensor=own + 1, tensors=len(before))
            return Updates(len(errors) + 1, 1.0, missing)
        moved += not unchanged
        expected_moved += 1
        errors.append(float(torch.linalg.vector_norm(actual - expected) / torch.linalg.vector_norm(expected)))
    if not errors:
        return Updates(0)
    if expected_moved and not moved:
        return Updates(len(errors), 1.0, finding("state_not_updated", tensor=1, tensors=len(before)))
    error = sum(errors) / len(errors)
    reason = finding("state_differs", error=error, allowed=_ALLOWED) if not error <= _ALLOWED else None
    return Updates(len(errors), error, reason)


def _pairs(state: State, baseline: State) -> Iterator[tuple[int, int]]:
    """Places of tensors that begin with the same values, each once: those of the same place first."""
    free = set(range(len(baseline)))
    for own, tensor in enumerate(state):
        for other in sorted(free, key=lambda place: place != own):
            if _begin_alike(tensor, baseline[other]):
                free.discard(other)
                yield own, other
                break


def _begin_alike(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if tensor.numel() != other.numel() or not tensor.numel() or tensor.is_complex() != other.is_complex():
        return False
    if tensor.device == other.device and tensor.shape == other.shape and torch.equal(tensor, other):
        return True
    expected = _wide(other).reshape(-1)
    difference = torch.linalg.vector_norm(_wide(tensor).reshape(-1).to(expected.device) - expected)
    return bool(difference <= _ALIKE * torch.linalg.vector_norm(expected))


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensors.computable(tensor)
    return tensor if tensor.is_complex() else tensor.double()
