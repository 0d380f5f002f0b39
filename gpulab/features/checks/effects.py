"""What steps change beside their output: named state, and gradients that they leave in `.grad`."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch

from gpulab.core.findings import Finding
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build
from gpulab.features.checks.findings import state_differs, state_not_updated

_DEEPEST = 4
_MOST_VALUES = 10_000


def gradients_of(build: Build) -> list[torch.Tensor]:
    """Gradients of all parameters that the step can be seen to reach, in order of appearance."""
    found: dict[int, torch.Tensor] = {}
    visited: set[int] = set()
    for leaf in _leaves((build.work.inputs, build.work.state, build.work.step), _DEEPEST, visited):
        if leaf.grad is not None and leaf.grad.layout == torch.strided:
            found.setdefault(id(leaf), leaf.grad.detach())
    return list(found.values())


def _leaves(value: Any, depth: int, visited: set[int]) -> Iterator[torch.Tensor]:
    """Leaves of autograd's graph in collections, modules, and what functions close over."""
    if isinstance(value, torch.Tensor):
        if value.is_leaf and value.requires_grad:
            yield value
        return
    if depth < 0 or id(value) in visited or len(visited) > _MOST_VALUES:
        return
    visited.add(id(value))
    for part in _parts(value):
        yield from _leaves(part, depth - 1, visited)


def _parts(value: Any) -> list[Any]:
    if isinstance(value, torch.nn.Module):
        return list(value.parameters())
    if isinstance(value, torch.optim.Optimizer):
        return [parameter for group in value.param_groups for parameter in group["params"]]
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, FunctionType):
        return [*_cells(value), *(value.__defaults__ or ())]
    return []


def _cells(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it is empty
            continue


_ALLOWED = 0.5
_OF_A_STEP = 0.8
"""Mean relative error of updates, and its part of one step among several: an optimizer's first
updates have the sign of a gradient, which may be noise; one that is left out is an error of a whole
step.
"""
_ALIKE = 5e-2
_EQUAL = 0.5
"""What begins alike: to this error, or equal in this part of the elements, as a cache of which some
places were written.
"""
_FEWEST = 16
_FEWEST_CHANGED = 4
_MOST = 48
"""Of hundreds of tensors so many are compared each time, drawn at random."""


@dataclass(frozen=True)
class Updates:
    """State tensors that were compared, the mean relative error of their updates, what is wrong."""

    compared: int
    error: float | None = None
    reason: Finding | None = None


State = Sequence[torch.Tensor]
Pairs = Sequence[tuple[int, int]]
"""Places of tensors in a state, and in the baseline's, that begin alike."""


def begin_alike(state: State, baseline: State) -> Pairs:
    """Give a state the values of the baseline's where both begin alike, to the last bit.

    A warm-up, or the capture of a graph, may have written what the steps are to write.
    """
    pairs = list(_pairs(state, baseline))
    places = [state[own] for own, _ in pairs]
    tensors.put_back(places, [baseline[other].reshape(state[own].shape) for own, other in pairs])
    return pairs


def compare_updates(
    before: State,
    after: State,
    baseline_before: State,
    baseline_after: State,
    *,
    steps: int = 1,
    pairs: Pairs | None = None,
) -> Updates:
    """Catches a training step without its update: a variant's state before and after some steps
    against the baseline's. Only what begins alike is compared.
    """
    errors: list[float] = []
    has_moved = False
    for own, other in _pairs(before, baseline_before) if pairs is None else pairs:
        expected = _moved(baseline_before[other], baseline_after[other])
        actual = _moved(before[own], after[own]).reshape(expected.shape).to(expected.device)
        changed = int(expected.count_nonzero())
        if not changed or not bool(torch.isfinite(expected).all()):
            continue
        moved = bool(actual.any())
        same_dtype = after[own].dtype == baseline_after[other].dtype
        enough = changed >= _FEWEST_CHANGED and expected.numel() >= _FEWEST
        if not moved and same_dtype and enough:
            return _not_updated(own, before, len(errors) + 1)
        has_moved |= moved
        difference = torch.linalg.vector_norm(actual - expected)
        errors.append(float(difference / torch.linalg.vector_norm(expected)))
    if not errors:
        return Updates(0)
    if not has_moved:
        return _not_updated(0, before, len(errors))
    error = sum(errors) / len(errors)
    allowed = min(_ALLOWED, _OF_A_STEP / steps)
    if error <= allowed:
        return Updates(len(errors), error)
    return Updates(len(errors), error, state_differs(error=error, allowed=allowed))


def _not_updated(place: int, state: State, compared: int) -> Updates:
    reason = state_not_updated(tensor=place + 1, tensors=len(state))
    return Updates(compared, 1.0, reason)


def _pairs(state: State, baseline: State) -> Iterator[tuple[int, int]]:
    """Places of tensors that begin alike: in their order, or each with the only one like it."""
    if [tensor.numel() for tensor in state] == [tensor.numel() for tensor in baseline]:
        places = random.SystemRandom().sample(range(len(state)), min(len(state), _MOST))
        yield from (
            (place, place) for place in sorted(places) if _is_alike(state[place], baseline[place])
        )
        return
    for own, tensor in enumerate(state):
        alike = [other for other, candidate in enumerate(baseline) if _is_alike(tensor, candidate)]
        if len(alike) == 1 and sum(_is_alike(other, baseline[alike[0]]) for other in state) == 1:
            yield own, alike[0]


def _is_alike(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    if (
        tensor.numel() != other.numel()
        or not tensor.numel()
        or tensor.is_complex() != other.is_complex()
    ):
        return False
    if tensor.device == other.device and tensor.shape == other.shape and torch.equal(tensor, other):
        return True
    expected = tensors.wide(other).reshape(-1)
    own = tensors.wide(tensor).reshape(-1).to(expected.device)
    if int((own == expected).sum()) >= _EQUAL * own.numel():
        return True
    difference = torch.linalg.vector_norm(own - expected)
    return bool(difference <= _ALIKE * torch.linalg.vector_norm(expected))


def _moved(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """By how much, where the later copy lies: each was kept where there was room for it."""
    return tensors.wide(after) - tensors.wide(before.to(after.device))
