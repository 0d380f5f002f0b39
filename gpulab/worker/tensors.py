"""Tensors inside whatever a scenario hands over: found, copied, put back, poisoned, compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import torch

TOLERANCE = {"fp64": 1e-10, "fp32": 1e-4, "tf32": 5e-3, "fp16": 5e-3, "bf16": 2e-2}
"""Relative Frobenius error allowed by dtype; the largest single error may be 10 x this x rms(reference)."""
_DTYPES = {torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}
_MAX_ERROR = 10
_CHUNK = 1 << 22


def leaves(tree: Any) -> list[torch.Tensor]:
    """Every tensor in lists, tuples, mappings, modules and optimizers; arrays share memory, numbers are copied."""
    return list(_walk(tree))


def _walk(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree.data  # no part of a graph, and no version counter: restoring must not upset autograd
    elif isinstance(tree, torch.nn.Module):
        yield from _walk([*tree.parameters(), *tree.buffers()])
    elif isinstance(tree, torch.optim.Optimizer):
        yield from _walk([list(state.values()) for state in tree.state.values()])
    elif isinstance(tree, Mapping):
        yield from _walk(list(tree.values()))
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _walk(item)
    elif isinstance(tree, (bool, int, float)):
        yield torch.tensor(tree, dtype=torch.float64)
    elif hasattr(tree, "__dlpack__"):
        yield torch.utils.dlpack.from_dlpack(tree)
    elif tree is not None:
        raise TypeError(f"a {type(tree).__name__} is no tensor, array or number, nor a collection of them")


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in tensors]


@torch.inference_mode()  # it may write to inference tensors too
def put_back(tensors: Sequence[torch.Tensor], saved: Sequence[torch.Tensor]) -> None:
    for tensor, value in zip(tensors, saved, strict=True):
        tensor.copy_(value)


def changed(tensors: Sequence[torch.Tensor], saved: Sequence[torch.Tensor]) -> bool:
    """Whether any bit differs (NaN equals itself here)."""
    return any(not torch.equal(_bits(now), _bits(then)) for now, then in zip(tensors, saved, strict=True))


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8) if tensor.numel() else tensor.new_empty(0)


def storages(tensors: Sequence[torch.Tensor]) -> set[int]:
    return {tensor.untyped_storage().data_ptr() for tensor in tensors if tensor.numel()}


@torch.inference_mode()
def poison(tensors: Sequence[torch.Tensor]) -> None:
    """Fill with what 0xFF bytes read as: NaN in floats, -1 in integers."""
    for tensor in tensors:
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.fill_(float("nan"))
        elif tensor.dtype == torch.bool:
            tensor.fill_(True)
        else:
            tensor.fill_(-1 if tensor.dtype.is_signed else torch.iinfo(tensor.dtype).max)


@torch.inference_mode()
def roll(tensors: Sequence[torch.Tensor]) -> None:
    """Shift along the last dimension in place: other data, from the same set of valid values."""
    for tensor in tensors:
        if tensor.dim():
            tensor.copy_(tensor.roll(1, dims=-1))


@torch.inference_mode()
def halve(tensors: Sequence[torch.Tensor]) -> None:
    """Half of every float, in place: for steps, such as a sum, that a shift does not change."""
    for tensor in tensors:
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.mul_(0.5)


@dataclass(frozen=True)
class Agreement:
    """How an output compares with its reference; `error` is the relative Frobenius error (None: not comparable)."""

    ok: bool
    error: float | None = None
    reason: str | None = None


def tolerance_of(tensors: Sequence[torch.Tensor], *dtypes: str | None) -> float:
    """The loosest tolerance of the tensors' and the declared dtypes; 0 where all of them are exact (integers)."""
    named = [_DTYPES.get(tensor.dtype) for tensor in tensors] + list(dtypes)
    return max((TOLERANCE.get(name, 0.0) for name in named if name), default=0.0)


def agree(output: Sequence[torch.Tensor], reference: Sequence[torch.Tensor], tolerance: float) -> Agreement:
    """Compare in float64, tensor by tensor; as one run of numbers where the two are cut up differently."""
    if len(output) != len(reference):
        output, reference = _joined(output), _joined(reference)
    worst = 0.0
    for mine, theirs in zip(output, reference, strict=True):
        if mine.numel() != theirs.numel():
            return Agreement(False, None, f"the output has {mine.numel()} elements, the baseline's {theirs.numel()}")
        found = _agree(mine, theirs, tolerance)
        if not found.ok:
            return found
        worst = max(worst, found.error or 0.0)
    return Agreement(True, worst)


def _joined(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.cat([tensor.reshape(-1).to("cpu") for tensor in tensors])] if tensors else []


def _agree(output: torch.Tensor, reference: torch.Tensor, tolerance: float) -> Agreement:
    squares = total = largest = 0.0
    mine, theirs = output.reshape(-1), reference.reshape(-1)
    for start in range(0, mine.numel(), _CHUNK):
        a = _wide(mine[start : start + _CHUNK])
        b = _wide(theirs[start : start + _CHUNK]).to(a.device)
        difference = (a - b).abs()
        difference[a == b] = 0  # equal infinities
        if torch.isnan(difference).any():
            return Agreement(False, None, "the output holds NaN where the baseline's does not")
        squares += float(difference.square().sum())
        total += float(b.abs().square().sum())
        largest = max(largest, float(difference.max()))
    error = sqrt(squares / total) if total else (inf if squares else 0.0)
    if not error <= tolerance:
        told = f"{error:.2g}" if isfinite(error) else "unbounded"
        return Agreement(False, error if isfinite(error) else None, f"relative error {told}, allowed {tolerance:.0e}")
    rms = sqrt(total / mine.numel()) if mine.numel() else 0.0
    if not largest <= _MAX_ERROR * tolerance * rms:
        return Agreement(
            False, error, f"one element is off by {largest:.2g}, allowed {_MAX_ERROR * tolerance * rms:.1g}"
        )
    return Agreement(True, error)


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
