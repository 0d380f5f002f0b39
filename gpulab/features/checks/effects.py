"""What steps change beside their output: named state, gradients that they leave in `.grad`, and
what only the next step reads, such as running statistics.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from types import FunctionType, MethodType
from typing import Any

import torch

from gpulab.core.findings import Finding
from gpulab.engine.build import tensors
from gpulab.engine.build.build import Build
from gpulab.engine.build.walk import is_of_scenario
from gpulab.features.checks.findings import state_differs, state_not_updated

_DEEPEST = 4
_MOST_VALUES = 10_000
_MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Gradients:
    """The gradients that a step left in `.grad`, and the parameters that they belong to."""

    parameters: list[torch.Tensor] = field(default_factory=list)
    left: list[torch.Tensor] = field(default_factory=list)


def gradients_of(build: Build) -> Gradients:
    """Copies of all that the step can be seen to reach, in order of appearance."""
    found = [
        (leaf, leaf.grad)
        for _, leaf in _reached(build)
        if leaf.is_leaf
        and leaf.requires_grad
        and leaf.grad is not None
        and leaf.grad.layout == torch.strided
    ]
    return Gradients(*(tensors.kept([pair[side] for pair in found]) for side in (0, 1)))


@dataclass(frozen=True)
class Effect:
    """A tensor that a step changes and nobody names, before and after one of its steps."""

    name: str
    place: int
    before: torch.Tensor
    after: torch.Tensor


@dataclass(frozen=True)
class Amount:
    """The amount of what a step changes for later ones."""

    tensors: int = 0
    elements: int = 0

    @classmethod
    def of(cls, changed: Sequence[torch.Tensor]) -> Amount:
        """Counters are left out: others count in a number of Python."""
        kept = [tensor for tensor in changed if tensor.numel() > 1]
        return cls(len(kept), sum(tensor.numel() for tensor in kept))

    def is_less_than(self, other: Amount) -> bool:
        """In both: tensors may be joined into one, and a cache may have less room."""
        return self.tensors < other.tensors and self.elements < other.elements


Named = list[tuple[str, torch.Tensor]]


def unnamed_memory(build: Build, inputs: Sequence[torch.Tensor]) -> Named:
    """Tensors that the step can be seen to reach beside inputs and state, by their names; none
    where they are too large for copies. Counters are left out.
    """
    known = tensors.storages([*inputs, *build.state])
    found = [
        (name, tensor.data)
        for name, tensor in _reached(build)
        if tensor.layout == torch.strided
        and not tensor.is_meta
        and (tensor.is_floating_point() or tensor.is_complex())
        and not _is_expanded(tensor)
        and not tensors.storages([tensor]) & known
    ]
    return found if sum(tensor.nbytes for _, tensor in found) <= _MOST_BYTES else []


def _is_expanded(tensor: torch.Tensor) -> bool:
    """Return whether several elements are one place in memory, which cannot be written to."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and not stride for size, stride in sizes)


def same_names(memory: Named, effects: Sequence[Effect]) -> list[torch.Tensor] | None:
    """The tensors that are called as those effects, and have their shapes; None where any is
    missing.
    """
    by_name = {(name, tensor.shape): tensor for name, tensor in memory if name}
    found = [by_name.get((effect.name, effect.after.shape)) for effect in effects]
    own = [tensor for tensor in found if tensor is not None]
    distinct = len({id(tensor) for tensor in own}) == len(effects)
    return own if distinct else None


def _reached(build: Build) -> Named:
    work = build.work
    visited: set[int] = set()
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in _tensors("", (work.inputs, work.state, work.step), _DEEPEST, visited):
        found.setdefault(id(tensor), (name, tensor))
    return list(found.values())


def _tensors(
    name: str, value: Any, depth: int, visited: set[int]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors in collections, modules, and what functions close over."""
    if isinstance(value, torch.Tensor):
        yield name, value
        return
    if depth < 0 or id(value) in visited or len(visited) > _MOST_VALUES:
        return
    visited.add(id(value))
    for part_name, part in _parts(value):
        yield from _tensors(part_name, part, depth - 1, visited)


def _parts(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, torch.nn.Module):
        return [*value.named_parameters(), *value.named_buffers()]
    if isinstance(value, torch.optim.Optimizer):
        groups = [group["params"] for group in value.param_groups]
        return [("", parameter) for group in groups for parameter in group]
    if isinstance(value, Mapping):
        return [(str(key), part) for key, part in value.items()]
    if isinstance(value, (list, tuple)):
        return [("", part) for part in value]
    if isinstance(value, partial):
        return [("", value.func), ("", value.args), ("", value.keywords)]
    if isinstance(value, MethodType):
        return [("", value.__self__), ("", value.__func__)]
    if isinstance(value, FunctionType):
        return [*_cells(value), *(("", default) for default in value.__defaults__ or ())]
    if is_of_scenario(value):
        return list(getattr(value, "__dict__", {}).items())
    return []


def _cells(function: FunctionType) -> Iterator[tuple[str, Any]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it is empty
            continue


_ALLOWED = 0.5
_STEP_ERROR = 0.8
"""Mean relative error of updates, and its part of one step among several: an optimizer's first
updates have the sign of a gradient, which may be noise; one that is left out is an error of a whole
step.
"""
_FIRST = 1e-2
"""What a first update, or a gradient, may be off by where all is computed in fp32."""
_TIMES_TOLERANCE = 10.0
"""The same in lower precision, in tolerances of an output."""
LOOSER = 4.0
"""Times by which each further step of a training loosens it."""
_NOISY_SHARE = 0.15
"""The part of the elements whose updates may be off by more: those of which the gradient is noise.
"""
_LARGEST_SHARE = 0.1
"""The part of a tolerance of the largest gradient that the error of a small one may be: where a
normalisation follows a bias, its gradient is rounding alone.
"""
_FP32 = 1e-4
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
    tolerance: float = 1e-4,
    pairs: Pairs | None = None,
) -> Updates:
    """Catches a training step without its update, or with another one: a variant's state before
    and after some steps against the baseline's. Only what begins alike is compared. `tolerance` is
    that of an output.
    """
    errors: list[float] = []
    first = allowed_of_first(tolerance) * LOOSER ** (steps - 1)
    moves = off = 0
    errors_off: list[torch.Tensor] = []
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
        differences = (actual - expected).abs()
        moves += changed
        is_off = differences > _allowed(first, expected, baseline_after[other])
        off += int(is_off.sum())
        errors_off.append(differences[is_off] / expected.abs()[is_off].clamp_min(1e-300))
        difference = torch.linalg.vector_norm(differences)
        errors.append(float(difference / torch.linalg.vector_norm(expected)))
    if not errors:
        return Updates(0)
    if not has_moved:
        return _not_updated(0, before, len(errors))
    error = sum(errors) / len(errors)
    allowed = min(_ALLOWED, _STEP_ERROR / steps)
    if off > _NOISY_SHARE * moves:
        error = float(torch.cat([part.cpu() for part in errors_off]).median())
        allowed = min(allowed, first)
    if error <= allowed:
        return Updates(len(errors), error)
    return Updates(len(errors), error, state_differs(error=error, allowed=allowed))


def _allowed(first: float, expected: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Return the error allowed of each element's update: the state is rounded after each step."""
    if not after.is_floating_point() and not after.is_complex():
        return first * expected.abs()
    rounding = 4 * torch.finfo(after.dtype).eps
    return first * expected.abs() + rounding * tensors.wide(after).abs()


def allowed_of_first(tolerance: float) -> float:
    """The relative error of a first update, or a gradient, of what is held to a tolerance."""
    return _FIRST if tolerance <= _FP32 else min(_ALLOWED, _TIMES_TOLERANCE * tolerance)


def worst_gradient(
    own: Gradients, baseline: Gradients, tolerance: float
) -> tuple[int, float] | None:
    """The first gradient that is not the baseline's, and its relative error; None where all are.

    Of parameters that are alike: one may be stored transposed.
    """
    sizes = [float(torch.linalg.vector_norm(tensors.wide(tensor))) for tensor in baseline.left]
    least = _LARGEST_SHARE * tolerance * max(sizes, default=0.0)
    for place, other in _pairs(own.parameters, baseline.parameters, most=len(sizes)):
        expected = tensors.wide(baseline.left[other])
        actual = tensors.wide(own.left[place]).reshape(expected.shape).to(expected.device)
        error = float(torch.linalg.vector_norm(actual - expected))
        size = sizes[other]
        if not error <= allowed_of_first(tolerance) * size + least:
            return place, error / size if size else inf
    return None


def _not_updated(place: int, state: State, compared: int) -> Updates:
    reason = state_not_updated(tensor=place + 1, tensors=len(state))
    return Updates(compared, 1.0, reason)


def _pairs(state: State, baseline: State, most: int = _MOST) -> Iterator[tuple[int, int]]:
    """Places of tensors that begin alike: in their order, or each with the only one like it."""
    if [tensor.numel() for tensor in state] == [tensor.numel() for tensor in baseline]:
        places = random.SystemRandom().sample(range(len(state)), min(len(state), most))
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
    if _sizes(tensor) != _sizes(other):
        # places of zeros, such as those of a cache, may be other places there
        values = tensors.computable(tensor).reshape(-1)
        varied = bool((values != values[0]).any())
        return varied and not tensors.changed([tensor], [other.to(tensor.device)])
    expected = tensors.wide(other).reshape(-1)
    own = tensors.wide(tensor).reshape(-1).to(expected.device)
    if int((own == expected).sum()) >= _EQUAL * own.numel():
        return True
    difference = torch.linalg.vector_norm(own - expected)
    return bool(difference <= _ALIKE * torch.linalg.vector_norm(expected))


def _sizes(tensor: torch.Tensor) -> list[int]:
    return [size for size in tensor.shape if size > 1]


def _moved(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """By how much, where the later copy lies: each was kept where there was room for it."""
    return tensors.wide(after) - tensors.wide(before.to(after.device))
