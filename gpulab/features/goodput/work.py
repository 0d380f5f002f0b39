"""FLOPs of operations by torch's own counter, and the bytes that they must move at least: each is
called again with tensors of the recorded shapes that have no memory.

A multiplication and an addition are two FLOPs; of what is computed element by element each element
is one. Bytes are every input once and every output once, whatever a kernel really moves. Both are
derived, never counted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from gpulab.features.goodput.recorded_operations import Work
from gpulab.traces.trace import DTYPES, INPUTS

_BACKENDS = (torch._C.DispatchKey.CPU, torch._C.DispatchKey.CUDA)
_ALLOCATES = re.compile(r"(new_)?empty|resize")
_OVERWRITES = re.compile(r"(copy|fill|zero|normal|uniform|random|exponential|bernoulli)_$")
"""They do not read what they write."""
_GATHERS = re.compile(r"index(_select)?$|gather|take|embedding$")
"""They read as much of their first input as they write."""
_OF_TORCH = ("dtype", "layout", "device", "pin_memory", "memory_format", "generator")
"""Arguments whose recorded value is a number of torch's own."""


class WorkOfCalls:
    """The work of calls; those that are alike are looked at once."""

    def __init__(self) -> None:
        self._known: dict[str, Work | None] = {}

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> Work | None:
        """None of what computes nothing, or by calls within it; or where it is not known."""
        inputs = [arguments.get(each) for each in INPUTS]
        key = f"{name} {inputs}"
        if key not in self._known:
            self._known[key] = None
            with suppress(AttributeError, SyntaxError, TypeError, ValueError):
                self._known[key] = _work(name.removeprefix("aten::"), *inputs)
        return self._known[key]


def _work(name: str, dims: Any, strides: Any, types: Any, values: Any) -> Work | None:
    """AttributeError of what is no operation of torch; others where inputs were not recorded."""
    recorded = zip(dims, strides, types, values, strict=True)
    inputs = [_input(*each) for each in recorded]
    packet = getattr(torch.ops.aten, name)
    for operation in (getattr(packet, overload) for overload in packet.overloads()):
        if _has_no_work(name, operation):
            return None
        with suppress(Exception):  # another overload was called, or none takes such tensors
            return _of_call(name, operation, inputs)
    return None


def _input(shape: Any, strides: Any, kind: str, text: str) -> Any:
    """A tensor without memory, or a value. ValueError of lists of tensors, whose types are not
    recorded.
    """
    if kind in DTYPES:
        dtype = getattr(torch, DTYPES[kind])
        return torch.empty_strided(shape, strides, dtype=dtype, device="meta")
    if kind == "TensorList":
        raise ValueError("no types")
    if text.lstrip("-") in ("inf", "nan"):
        return float(text)
    return ast.literal_eval(text) if text else None


def _has_no_work(name: str, operation: Any) -> bool:
    """Return whether it only looks at memory, allocates it, or leaves all to what it calls."""
    if _formula(name) is not None or _OVERWRITES.search(name):
        return False
    computes = any(map(operation.has_kernel_for_dispatch_key, _BACKENDS))
    return operation.is_view or not computes or _ALLOCATES.match(name) is not None


def _of_call(name: str, operation: Any, inputs: Sequence[Any]) -> Work:
    """Any error, where it does not take these."""
    schema = operation._schema.arguments
    by_place, by_name = [], {}
    for argument, value in zip(schema[: len(inputs)], inputs, strict=True):
        if argument.kwarg_only and value is not None and argument.name not in _OF_TORCH:
            by_name[argument.name] = value
        elif not argument.kwarg_only:
            by_place.append(value)
    result = operation(*by_place, **by_name)
    # a number beside tensors is recorded as one without dimensions
    read = [each for each in inputs if isinstance(each, torch.Tensor) and each.dim()]
    written = [each for each in tree_leaves(result) if isinstance(each, torch.Tensor)]
    moved = sum(map(_stored, written))
    if _OVERWRITES.search(name):
        read = read[1:]
    elif _GATHERS.match(name):
        moved += min(moved, _stored(read.pop(0)))
    flops = None
    if formula := _formula(name):
        flops = formula(*by_place, out_val=result)
    elif torch.Tag.pointwise in operation.tags:
        flops = sum(each.numel() for each in written)
    return Work(flops, moved + sum(map(_stored, read)))


def _formula(name: str) -> Any:
    """Torch's own, of an operation in place that of the one it is named after, and of a CPU's
    attention that of a GPU's.
    """
    names = name, name.removesuffix("_"), name.replace("_for_cpu", "")
    packets = (getattr(torch.ops.aten, each, None) for each in names)
    return next((flop_registry[each] for each in packets if each in flop_registry), None)


def _stored(tensor: torch.Tensor) -> int:
    """Bytes that there are of it: what was expanded has fewer than elements."""
    sizes = zip(tensor.shape, tensor.stride(), strict=True)
    return prod(size for size, stride in sizes if stride or not size) * tensor.element_size()
