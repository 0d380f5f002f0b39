"""Tensors inside whatever a scenario hands over: found, copied, put back, poisoned, compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, sqrt
from typing import Any

import torch

TOLERANCE = {"fp64": 1e-10, "fp32": 1e-4, "tf32": 5e-3, "fp16": 5e-3, "bf16": 2e-2, "fp8": 1e-1}
"""Relative Frobenius error allowed by dtype; the largest single error may be 10 x this x rms(reference)."""
_DTYPES = {
    torch.float64: "fp64",
    torch.complex128: "fp64",
    torch.float32: "fp32",
    torch.complex64: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "fp8",
    torch.float8_e5m2: "fp8",
}
_MAX_ERROR = 10
_CHUNK = {"cpu": 1 << 16, "cuda": 1 << 24}
"""Elements compared at a time: what a core's cache holds, what fills a GPU. Larger ones took a CPU 10x longer."""


def leaves(tree: Any) -> list[torch.Tensor]:
    """Every tensor in lists, tuples, mappings, modules and optimizers; arrays share memory, numbers are copied."""
    return list(_walk(tree))


def live_leaves(name: str, tree: Any) -> list[torch.Tensor]:
    """The same, of what the lab will write to. TypeError where a number stands, which would be written in vain."""
    found = leaves(tree)
    if any(not tensor.dim() and tensor.dtype == torch.float64 for tensor in found) and _has_number(tree):
        raise TypeError(f"{name}= holds a Python number, which cannot be put back: make it a tensor")
    return found


def _has_number(tree: Any) -> bool:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    return isinstance(tree, (bool, int, float)) or (
        isinstance(tree, (list, tuple)) and any(_has_number(item) for item in tree)
    )


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
def halve(tensors: Sequence[torch.Tensor]) -> None:
    """Half of every float, in place: other data, whatever the layout, and valid wherever the first was."""
    for tensor in tensors:
        if tensor.is_floating_point() or tensor.is_complex():
            tensor.copy_(_computable(tensor) * 0.5)


@torch.inference_mode()
def roll(tensors: Sequence[torch.Tensor]) -> None:
    """Shift along the last dimension in place: for steps without floats, or that scaling does not change."""
    for tensor in tensors:
        if tensor.dim():
            tensor.copy_(tensor.roll(1, dims=-1))


def finite(tensors: Sequence[torch.Tensor]) -> bool:
    return all(bool(torch.isfinite(_computable(tensor)).all()) for tensor in tensors)


@dataclass(frozen=True)
class Agreement:
    """How an output compares with its reference; `error` is the relative Frobenius error (None: not comparable)."""

    ok: bool
    error: float | None = None
    tolerance: float = 0.0
    reason: str = ""


def tolerance_of(output: torch.Tensor, reference: torch.Tensor, dtypes: Sequence[str | None] = ()) -> float:
    """The loosest tolerance of both tensors and of the dtypes declared; 0 where both are integers."""
    named = [_DTYPES.get(output.dtype), _DTYPES.get(reference.dtype)]
    if not any(named):
        return 0.0
    return max(TOLERANCE.get(name, 0.0) for name in (*named, *dtypes) if name)


def agree(
    output: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    *,
    tolerance: float | None = None,
    dtypes: Sequence[str | None] = (),
) -> Agreement:
    """Compare in float64, tensor by tensor; as one run of numbers where the two are cut up differently."""
    if not output:
        return Agreement(False, reason="the step returns nothing to check: return its output, or name Work(output=...)")
    if len(output) != len(reference):
        output, reference = _joined(output), _joined(reference)
    agreed: list[Agreement] = []
    for mine, theirs in zip(output, reference, strict=True):
        if mine.numel() != theirs.numel():
            return Agreement(
                False, None, reason=f"the output has {mine.numel()} elements, the baseline's {theirs.numel()}"
            )
        allowed = tolerance_of(mine, theirs, dtypes) if tolerance is None else tolerance
        found = _agree(mine.reshape(-1), theirs.reshape(-1), allowed)
        if not found.ok:
            return found
        agreed.append(found)
    return max(agreed, key=lambda one: (one.error or 0.0, one.tolerance))


def _joined(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.cat([tensor.reshape(-1).to("cpu") for tensor in tensors])] if tensors else []


def _agree(mine: torch.Tensor, theirs: torch.Tensor, tolerance: float) -> Agreement:
    if not tolerance and mine.dtype == theirs.dtype:
        # Integers are not compared in float64: above 2^53 it cannot tell them apart.
        differ = int((mine != theirs.to(mine.device)).sum())
        return Agreement(not differ, 0.0 if not differ else None, 0.0, f"{differ} of {mine.numel()} elements differ")
    squares = total = largest = 0.0
    chunk = _CHUNK.get(mine.device.type, _CHUNK["cpu"])
    for start in range(0, mine.numel(), chunk):
        a = _wide(mine[start : start + chunk])
        b = _wide(theirs[start : start + chunk]).to(a.device)
        difference = (a - b).abs()
        difference[a == b] = 0  # equal infinities
        if torch.isnan(difference).any():
            return Agreement(False, None, tolerance, "the output holds NaN where the baseline's does not")
        squares += float(difference.square().sum())
        total += float(b.abs().square().sum())
        largest = max(largest, float(difference.max()))
    error = sqrt(squares / total) if total else (inf if squares else 0.0)
    if not error <= tolerance:
        told = f"{error:.2g}" if isfinite(error) else "unbounded"
        reason = f"relative error {told}, allowed {tolerance:.0e}"
        return Agreement(False, error if isfinite(error) else None, tolerance, reason)
    rms = sqrt(total / mine.numel()) if mine.numel() else 0.0
    allowed = _MAX_ERROR * tolerance * rms
    if not largest <= allowed:
        return Agreement(False, error, tolerance, f"one element is off by {largest:.2g}, allowed {allowed:.1g}")
    return Agreement(True, error, tolerance)


def _computable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a wider copy where torch has no arithmetic for its type, as for fp8."""
    return tensor if tensor.element_size() > 1 else tensor.float()


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
