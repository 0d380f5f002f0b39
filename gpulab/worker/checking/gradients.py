"""Gradients that a step leaves in `.grad`: an effect of it that no output shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import torch

from gpulab.worker.building.build import Build

_DEEPEST, _MOST = 4, 10_000


def left_by(build: Build) -> list[torch.Tensor]:
    """Gradients of all parameters that the step can be seen to reach, in the order in which it names them."""
    found: dict[int, torch.Tensor] = {}
    visited: set[int] = set()
    for leaf in _leaves((build.work.inputs, build.work.state, build.work.step), _DEEPEST, visited):
        if leaf.grad is not None and leaf.grad.layout == torch.strided:
            found.setdefault(id(leaf), leaf.grad.detach())
    return list(found.values())


def _leaves(value: Any, depth: int, visited: set[int]) -> Iterator[torch.Tensor]:
    """Leaves of the graph of autograd that a value holds: in collections, modules, and what functions close over."""
    if isinstance(value, torch.Tensor):
        if value.is_leaf and value.requires_grad:
            yield value
        return
    if depth < 0 or id(value) in visited or len(visited) > _MOST:
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
