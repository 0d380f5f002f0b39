"""What steps change in named state: a variant has to change what the baseline changes, about as much."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gpulab.protocol.finding import Finding, finding
from gpulab.worker.building import tensors

_ALLOWED, _OF_A_STEP = 0.5, 0.8
"""Mean relative error of updates, and its part of one step among several: an optimizer's first updates have the sign
of a gradient, which may be noise; one that is left out is an error of a whole step."""
_ALIKE = 5e-2
_FEWEST, _FEWEST_CHANGED = 16, 4
_MOST = 48
"""Of hundreds of tensors so many are compared each time, drawn at random."""


@dataclass(frozen=True)
class Updates:
    """State tensors that were compared, the mean relative error of their updates, and what is wrong with them."""

    compared: int
    error: float | None = None
    reason: Finding | None = None


State = Sequence[torch.Tensor]


def compare(before: State, after: State, baseline_before: State, baseline_after: State, *, steps: int = 1) -> Updates:
    """A variant's state before and after some steps against the baseline's. Only what begins alike is compared."""
    allowed = min(_ALLOWED, _OF_A_STEP / steps)
    errors: list[float] = []
    moved = expected_moved = 0
    for own, other in _pairs(before, baseline_before):
        expected = _moved(baseline_before[other], baseline_after[other])
        actual = _moved(before[own], after[own]).reshape(expected.shape).to(expected.device)
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
    reason = finding("state_differs", error=error, allowed=allowed) if not error <= allowed else None
    return Updates(len(errors), error, reason)


def _pairs(state: State, baseline: State) -> Iterator[tuple[int, int]]:
    """Places of tensors that begin with the same values: in their order, or each with the only one like it."""
    if [tensor.numel() for tensor in state] == [tensor.numel() for tensor in baseline]:
        places = random.SystemRandom().sample(range(len(state)), min(len(state), _MOST))
        yield from ((place, place) for place in sorted(places) if _begin_alike(state[place], baseline[place]))
        return
    for own, tensor in enumerate(state):
        alike = [other for other, candidate in enumerate(baseline) if _begin_alike(tensor, candidate)]
        if len(alike) == 1 and sum(_begin_alike(other, baseline[alike[0]]) for other in state) == 1:
            yield own, alike[0]


def _begin_alike(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if tensor.numel() != other.numel() or not tensor.numel() or tensor.is_complex() != other.is_complex():
        return False
    if tensor.device == other.device and tensor.shape == other.shape and torch.equal(tensor, other):
        return True
    expected = _wide(other).reshape(-1)
    difference = torch.linalg.vector_norm(_wide(tensor).reshape(-1).to(expected.device) - expected)
    return bool(difference <= _ALIKE * torch.linalg.vector_norm(expected))


def _moved(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """By how much, where the later copy lies: each was kept where there was room for it."""
    return _wide(after) - _wide(before.to(after.device))


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensors.computable(tensor)
    return tensor if tensor.is_complex() else tensor.double()
