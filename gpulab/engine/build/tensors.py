"""Tensors in the inputs, outputs and state of a scenario: collected, copied, put back, poisoned."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gpulab.engine.build.walk import Walk

_FEW = 16
_CHUNK = {"cpu": 1 << 16, "cuda": 1 << 24}
"""Elements compared at a time: what a core's cache holds, what fills a GPU. Larger ones took a CPU
10x longer.
"""


def leaves(tree: Any, number: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Every value of an output as a tensor: Python's floats in the dtype `number`, texts and the
    like as a digest. What a step returns as None is nothing.

    Arrays share their memory where NumPy or torch alone have it, and are copied elsewhere: nothing
    may be written into bytes or a file.
    """
    return [] if tree is None else list(Walk(number).tensors(tree))


def live_leaves(keyword: str, tree: Any) -> list[torch.Tensor]:
    """The tensors of inputs or state, which the lab will write to; none where an input cannot be
    written to.

    TypeError where a number stands, which would be written in vain, and for such state.
    """
    walk = Walk(torch.float64, live=True)
    tensors = list(walk.tensors(tree))
    if walk.numbers:
        raise TypeError(
            f"{keyword}= holds a Python number, which cannot be restored: make it a tensor"
        )
    if walk.not_exchanged and keyword == "state":
        raise TypeError(f"state= holds {walk.not_exchanged}, which cannot be restored")
    if walk.read_only and keyword == "state":
        raise TypeError(
            "state= holds an array that is read-only, reversed or in memory that is not its own, "
            "so that it cannot be restored: name a copy (numpy.array)"
        )
    return [] if walk.read_only else tensors


def read_only(inputs: Any) -> tuple[bool, str]:
    """Return whether an input cannot be written to; its kind, where a copy could not either."""
    walk = Walk(torch.float64, live=True)
    deque(walk.tensors(inputs), maxlen=0)
    return walk.read_only, walk.not_exchanged


def number_dtype(inputs: Any) -> torch.dtype:
    """Return the dtype of the floats that a step returns, such as `loss.item()`: float64 where all
    of its inputs are, and else float32.
    """
    dtypes = {tensor.dtype for tensor in Walk(torch.float64, live=True).tensors(inputs)}
    floats = {dtype for dtype in dtypes if dtype.is_floating_point or dtype.is_complex}
    doubles = {torch.float64, torch.complex128}
    return torch.float64 if floats and floats <= doubles else torch.float32


def strided(tree: Any) -> list[torch.Tensor]:
    """All tensors in it that have memory of their own."""
    tensors = (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))
    return [tensor for tensor in tensors if tensor.layout == torch.strided]


def joined(*lists: Sequence[torch.Tensor]) -> list[list[torch.Tensor]]:
    """Each list with its many tensors joined into a few large ones, in the same way in all lists.

    An optimizer has hundreds, and to wait for the device after each takes longer than its step.
    """
    if len(lists[0]) <= _FEW:
        return [list(tensors) for tensors in lists]
    groups: defaultdict[object, list[list[torch.Tensor]]] = defaultdict(list)
    for row in zip(*lists, strict=True):
        key = tuple((tensor.device, tensor.dtype) for tensor in row)
        groups[key].append([tensor.resolve_conj().reshape(-1) for tensor in row])
    result: list[list[torch.Tensor]] = [[] for _ in lists]
    for rows in groups.values():
        for tensors, parts in zip(result, zip(*rows, strict=True), strict=True):
            tensors.append(torch.cat(parts))
    return result


def copies(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in tensors]


def kept(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies that outlive a step: on the GPU, where they are quick to compare, or on the host where
    that has no ample room.
    """
    return [
        tensor.detach().to(place, copy=True)
        for tensor, place in zip(tensors, _places(tensors), strict=True)
    ]


def _places(tensors: Sequence[torch.Tensor]) -> list[torch.device]:
    """Choose the device of all copies: large ones of the host lie on a GPU.

    One core takes half a second for a pass over 512 MiB, and checks are dozens of passes.
    """
    host = torch.device("cpu")
    wanted = [tensor.device for tensor in tensors]
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gpu = torch.device("cuda", torch.cuda.current_device())
        # so much on the host is copied to a GPU to be read
        if sum(tensor.nbytes for tensor in tensors if not tensor.is_cuda) >= 16 << 20:
            wanted = [tensor.device if tensor.is_cuda else gpu for tensor in tensors]
    for device in {place for place in wanted if place.type == "cuda"}:
        needed = sum(
            tensor.nbytes for tensor, place in zip(tensors, wanted, strict=True) if place == device
        )
        # several copies exist at a time
        if 8 * needed > torch.cuda.mem_get_info(device)[0]:  # bytes that are free
            wanted = [host if place == device else place for place in wanted]
    return wanted


@torch.inference_mode()  # it may write to inference tensors too
def put_back(tensors: Sequence[torch.Tensor], saved: Sequence[torch.Tensor]) -> None:
    if len(tensors) > _FEW:
        torch._foreach_copy_(list(tensors), list(saved))
        return
    for tensor, value in zip(tensors, saved, strict=True):
        tensor.copy_(value)


def changed(tensors: Sequence[torch.Tensor], saved: Sequence[torch.Tensor]) -> bool:
    """Return whether any bit differs (NaN equals itself here)."""
    if [tensor.numel() for tensor in tensors] != [tensor.numel() for tensor in saved]:
        return True
    for now, then in zip(*joined(tensors, saved), strict=True):
        a = _bits(now)
        b = _bits(then)
        if a.numel() != b.numel():
            return True
        if not all(torch.equal(*parts) for parts in chunks(a, b)):
            return True
    return False


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.resolve_conj()  # else it cannot be viewed
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


def finite(tensors: Sequence[torch.Tensor]) -> bool:
    # all are asked before the first is waited for; joined they would need as much memory again
    flags = [torch.isfinite(computable(tensor)).all() for tensor in tensors]
    return all(map(bool, flags))


def has_nan(tensors: Sequence[torch.Tensor]) -> bool:
    flags = [torch.isnan(computable(tensor)).any() for tensor in tensors]
    return any(map(bool, flags))


def chunks(
    actual: torch.Tensor, expected: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Both, piece by piece on one device: less crosses a link before they are widened."""
    device = expected.device if expected.device.type == "cuda" else actual.device
    size = _CHUNK.get(device.type, _CHUNK["cpu"])
    for start in range(0, actual.numel(), size):
        yield actual[start : start + size].to(device), expected[start : start + size].to(device)


def computable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or a wider copy where torch has no arithmetic for its dtype, as for fp8."""
    return tensor if tensor.element_size() > 1 else tensor.float()


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In double precision."""
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
