"""Tensors in the inputs, outputs and state of a scenario: collected, copied, put back, poisoned,
compared.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan, sqrt
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gpulab.core.findings import Finding
from gpulab.core.statuses import CheckKind
from gpulab.engine.processes.failure import RefusedError
from gpulab.features.checks.findings import (
    computes_when_read,
    element_counts_differ,
    elements_differ,
    one_element_off,
    output_has_nan,
    part_not_computed,
    relative_error,
)

TOLERANCE = {
    "fp64": 1e-10,
    "fp32": 1e-4,
    "tf32": 5e-3,
    "fp16": 5e-3,
    "bf16": 2e-2,
    "fp8": 1e-1,
    "int8": 5e-2,
}
"""Relative Frobenius error allowed by dtype; a single element may be off by 10 x this x
rms(reference), and by twice this of its own value.
"""
_CAP = 10
_MOST = 0.1
"""`Work(tolerance=)` may be 10 x that of the dtype, and no more than this."""
_INTEGER_CAP = 5e-2
"""Of whole numbers, which are equal unless a tolerance is named; and of what is computed in
int8.
"""
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
_WITHOUT_ARITHMETIC = {
    getattr(torch, name)
    for name in ("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2")
    if hasattr(torch, name)
}
_MAX_ERROR = 10
_OWN_ERROR = 2
_PART = 1 << 10
_FEWEST_OF_PART = 32
"""Elements that are looked at together: none of them computed, and all alike, is an error however
small they are.
"""
_NOISE = 5e-7
"""What is smaller than this part of the rms of all elements may be rounding, which another
algorithm does not have.
"""
_LARGEST_ERROR = 1e9
"""Beyond it an error says nothing but that the values are others, such as what memory held
before.
"""
_ROOM = 8
"""Times of their bytes that are free on a device, for copies to stay there: several exist at a
time.
"""
_LARGE = 16 << 20
"""Bytes from which on tensors on the host are copied to a GPU to be read."""
_ARRAYS = ("numpy", "cupy", "jax", "jaxlib")
"""Packages whose arrays have their values when they are handed over, or are waited for."""
OF_SCENARIOS = ("_scenario_", "_answer")
"""Modules of scenarios: a mapping of their own may compute when it is read."""
_FEW = 16
_ROUNDING = 1e-5
"""Relative error of fp32 results that only differ in the order of their sums."""
_CHUNK = {"cpu": 1 << 16, "cuda": 1 << 24}
"""Elements compared at a time: what a core's cache holds, what fills a GPU. Larger ones took a CPU
10x longer.
"""


def leaves(tree: Any) -> list[torch.Tensor]:
    """Every tensor in lists, tuples, mappings, modules and optimizers; arrays share memory, numbers
    are copied.
    """
    return list(_walk(tree))


def live_leaves(keyword: str, tree: Any) -> list[torch.Tensor]:
    """The same, of what the lab will write to. TypeError where a number stands, which would be
    written in vain.
    """
    tensors = leaves(tree)
    if any(
        not tensor.dim() and tensor.dtype == torch.float64 for tensor in tensors
    ) and _has_number(tree):
        raise TypeError(
            f"{keyword}= holds a Python number, which cannot be restored: make it a tensor"
        )
    return tensors


def strided(tree: Any) -> list[torch.Tensor]:
    """All tensors in it that have memory of their own."""
    tensors = (leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))
    return [tensor for tensor in tensors if tensor.layout == torch.strided]


def _has_number(tree: Any) -> bool:
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    return isinstance(tree, (bool, int, float)) or (
        isinstance(tree, (list, tuple)) and any(_has_number(item) for item in tree)
    )


def _walk(tree: Any) -> Iterator[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        _require_values(tree, ("torch",))
        # no part of a graph, and no version counter: restoring must not upset autograd
        for part in _parts(tree.data):
            yield _dense(part)
    elif isinstance(tree, torch.nn.Module):
        yield from _walk([*tree.parameters(), *tree.buffers()])
    elif isinstance(tree, torch.optim.Optimizer):
        yield from _walk([list(state.values()) for state in tree.state.values()])
    elif isinstance(tree, Mapping):
        if type(tree).__module__.rpartition(".")[2].startswith(OF_SCENARIOS):
            raise RefusedError(
                computes_when_read(kind=type(tree).__name__), check=CheckKind.STREAMS
            )
        yield from _walk(_in_order(tree))
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _walk(item)
    elif isinstance(tree, (bool, int, float)):
        yield torch.tensor(tree, dtype=torch.float64)
    elif hasattr(tree, "__dlpack__"):
        _require_values(tree, _ARRAYS)
        yield _dense(torch.utils.dlpack.from_dlpack(tree))
    elif tree is not None and not isinstance(tree, (str, bytes)):
        raise TypeError(
            f"a {type(tree).__name__} is not a tensor, an array, a number, or a collection of them"
        )


def _parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The tensors in plain memory that a sparse one consists of; of any other, itself."""
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


def in_plain_memory(tree: Any) -> Any:
    """A tree in which sparse tensors are dense, to be compared with outputs that are."""
    if isinstance(tree, torch.Tensor) and len(_parts(tree)) > 1:
        return tree.detach().to_dense()
    if isinstance(tree, (list, tuple)):
        return [in_plain_memory(part) for part in tree]
    if isinstance(tree, Mapping):
        return [in_plain_memory(part) for part in _in_order(tree)]
    return tree


def _in_order(tree: Mapping[Any, Any]) -> list[Any]:
    """Values by their names, in whatever order they were put in."""
    if all(isinstance(name, str) for name in tree):
        return [tree[name] for name in sorted(tree)]
    return list(tree.values())


def _require_values(tree: Any, packages: tuple[str, ...]) -> None:
    """RefusedError for a kind of tensor that code of a scenario made up: it may compute when it is
    looked at.
    """
    kind = type(tree)
    if kind.__module__.partition(".")[0] not in packages or kind.__module__ not in sys.modules:
        raise RefusedError(computes_when_read(kind=kind.__name__), check=CheckKind.STREAMS)


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor. TypeError where its values do not lie in plain memory: torch then raises, or
    dies.
    """
    if tensor.layout != torch.strided or tensor.is_nested:
        kind = str(tensor.layout).removeprefix("torch.").lstrip("_").replace("_", " ")
        if tensor.is_nested:
            kind = "nested"
        raise TypeError(
            f"a {kind} tensor cannot be checked: name a dense one, such as its values(), or "
            "to_dense()"
        )
    if tensor.is_quantized:
        raise TypeError(
            "a quantized tensor cannot be checked: name a dense one, such as its dequantize()"
        )
    if tensor.dtype in _WITHOUT_ARITHMETIC:
        raise TypeError(f"torch has no arithmetic for {tensor.dtype}: name its view(torch.uint8)")
    if tensor.is_meta or not _has_values(tensor):
        name = "meta tensor" if tensor.is_meta else type(tensor).__name__
        raise TypeError(f"a {name} without values cannot be checked: name a tensor on the device")
    return tensor


def _has_values(tensor: torch.Tensor) -> bool:
    try:
        return not tensor.numel() or bool(tensor.untyped_storage().data_ptr())
    except RuntimeError:
        return False  # a subclass that holds other tensors, or none


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


def on_gpu_if_large(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or of a large one on the host a copy on the GPU in use."""
    (place,) = _places([tensor])
    return tensor.to(place) if place.type == "cuda" else tensor


def _places(tensors: Sequence[torch.Tensor]) -> list[torch.device]:
    """Where copies of all of them are to lie: those on the host on a GPU where they are large.

    One core takes half a second for a pass over 512 MiB, and checks are dozens of passes.
    """
    host = torch.device("cpu")
    wanted = [tensor.device for tensor in tensors]
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        gpu = torch.device("cuda", torch.cuda.current_device())
        if sum(tensor.nbytes for tensor in tensors if not tensor.is_cuda) >= _LARGE:
            wanted = [tensor.device if tensor.is_cuda else gpu for tensor in tensors]
    for device in {place for place in wanted if place.type == "cuda"}:
        needed = sum(
            tensor.nbytes for tensor, place in zip(tensors, wanted, strict=True) if place == device
        )
        if _ROOM * needed > torch.cuda.mem_get_info(device)[0]:  # bytes that are free
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
    """Whether any bit differs (NaN equals itself here)."""
    if [tensor.numel() for tensor in tensors] != [tensor.numel() for tensor in saved]:
        return True
    for now, then in zip(*joined(tensors, saved), strict=True):
        a = _bits(now)
        b = _bits(then)
        if a.numel() != b.numel():
            return True
        if not all(torch.equal(*parts) for parts in _chunks(a, b)):
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


@dataclass(frozen=True)
class Agreement:
    """How an output compares with its reference; `error` is the relative Frobenius error (None: not
    comparable).

    `tensor` is the place of the one that disagrees, or that agrees least.
    """

    ok: bool
    error: float | None = None
    tolerance: float = 0.0
    reason: Finding | None = None
    tensor: int = 0


def tolerance_of(
    output: torch.Tensor, reference: torch.Tensor, dtypes: Sequence[str | None] = ()
) -> float:
    """The loosest tolerance of the reference and of the dtypes declared; 0 where both are integers.

    A lower precision that an output has and nobody declared is held to that of the reference.
    """
    own = _DTYPES.get(output.dtype)
    names = [_DTYPES.get(reference.dtype)]
    if not any((own, *names)):
        return 0.0
    if not any(names):
        names.append(own)
    return max(TOLERANCE.get(name, 0.0) for name in (*names, *dtypes) if name)


def cap_of(
    output: torch.Tensor, reference: torch.Tensor, dtypes: Sequence[str | None] = ()
) -> float:
    """The largest tolerance that may be named for them."""
    default = tolerance_of(output, reference, dtypes)
    integers = _INTEGER_CAP if not default or "int8" in dtypes else 0.0
    return max(default, min(_CAP * default, _MOST), integers)


def agree(
    output: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    *,
    tolerance: float | None = None,
    dtypes: Sequence[str | None] = (),
) -> Agreement:
    """Compare in float64, tensor by tensor; as one run of numbers where the two are cut up
    differently.

    `tolerance` replaces that of the dtypes, up to its cap.
    """
    if len(output) != len(reference):
        output = _joined(output)
        reference = _joined(reference)
    if (
        len(output) > _FEW
        and tolerance is None
        and (equal := _agree_all(output, reference, dtypes))
    ):
        return equal
    agreements: list[Agreement] = []
    for place, (actual, expected) in enumerate(zip(output, reference, strict=True)):
        if actual.numel() != expected.numel():
            counts = element_counts_differ(elements=actual.numel(), baseline=expected.numel())
            return Agreement(False, reason=counts, tensor=place)
        if tolerance is None:
            allowed = tolerance_of(actual, expected, dtypes)
        else:
            allowed = min(tolerance, cap_of(actual, expected, dtypes))
        agreement = replace(_agree(*_flat(actual, expected), allowed), tensor=place)
        if not agreement.ok:
            return agreement
        agreements.append(agreement)
    return max(agreements, key=lambda agreement: (agreement.error or 0.0, agreement.tolerance))


def _flat(actual: torch.Tensor, expected: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Both as one row, as they lie in memory where they lie alike: copies in another order took a
    GPU as long as a block, which counted as time that the variant left behind its blocks.
    """
    if actual.shape == expected.shape and actual.stride() == expected.stride():
        dims = sorted(range(actual.dim()), key=actual.stride, reverse=True)
        actual = actual.permute(dims)
        expected = expected.permute(dims)
    return actual.reshape(-1), expected.reshape(-1)


def _agree_all(
    output: Sequence[torch.Tensor], reference: Sequence[torch.Tensor], dtypes: Sequence[str | None]
) -> Agreement | None:
    """Many tensors at once, in their own precision, where each agrees to rounding; None: they are
    looked at one by one.

    An element of each may be off by no more than the rounding of all of it.
    """
    kinds = {(tensor.dtype, tensor.device) for tensor in (*output, *reference)}
    same_shapes = all(
        actual.shape == expected.shape for actual, expected in zip(output, reference, strict=True)
    )
    if len(kinds) > 1 or output[0].dtype != torch.float32 or not same_shapes:
        return None
    differences = torch._foreach_sub(list(output), list(reference))
    errors = torch.stack(torch._foreach_norm(differences))
    sizes = torch.stack(torch._foreach_norm(list(reference)))
    worst = float((errors / sizes.clamp_min(1e-30)).max())
    tolerance = tolerance_of(output[0], reference[0], dtypes)
    return Agreement(True, worst, tolerance) if worst <= _ROUNDING and tolerance else None


def _joined(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    if not tensors:
        return [torch.empty(0)]
    device = tensors[0].device
    return [torch.cat([tensor.reshape(-1).to(device) for tensor in tensors])]


def _agree(actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> Agreement:
    if not tolerance and actual.dtype == expected.dtype:
        # Integers are not compared in float64: above 2^53 it cannot tell them apart.
        differ = sum(int((a != b).sum()) for a, b in _chunks(actual, expected))
        reason = elements_differ(differ=differ, elements=actual.numel()) if differ else None
        return Agreement(not differ, None if differ else 0.0, 0.0, reason)
    if (
        actual.dtype == expected.dtype
        and actual.device == expected.device
        and torch.equal(actual, expected)
    ):
        return Agreement(True, 0.0, tolerance)  # a tenth of the time of the passes below, on a CPU
    squares = total = largest = missing = 0.0
    for narrow in _chunks(actual, expected):
        a, b = map(wide, narrow)
        difference = torch.where(a == b, 0.0, (a - b).abs())  # infinities may be equal
        size = b.abs()
        beyond = difference - _OWN_ERROR * tolerance * size
        sums = torch.stack((difference.square().sum(), size.square().sum(), beyond.max()))
        chunk_squares, chunk_total, chunk_largest = sums.tolist()
        if isnan(chunk_squares):
            return Agreement(False, None, tolerance, output_has_nan())
        squares += chunk_squares
        total += chunk_total
        largest = max(largest, chunk_largest)
        missing = max(missing, _rms_of_missing(a, b))
    error = inf if squares else 0.0
    if total:
        error = sqrt(squares / total)
    if not error <= tolerance:
        bounded = error if error <= _LARGEST_ERROR else None
        return Agreement(
            False, bounded, tolerance, relative_error(error=bounded, allowed=tolerance)
        )
    rms = sqrt(total / actual.numel()) if actual.numel() else 0.0
    allowed = _MAX_ERROR * tolerance * rms
    if not largest <= allowed:
        return Agreement(False, error, tolerance, one_element_off(largest=largest, allowed=allowed))
    if missing > _NOISE * rms:
        return Agreement(False, error, tolerance, part_not_computed(size=missing, rms=rms))
    return Agreement(True, error, tolerance)


def _rms_of_missing(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Of the parts in which one value stands everywhere, and the reference's values differ: the
    largest rms of these.

    A part that is small beside the others is next to nothing in the error of all.
    """
    parts = actual.numel() // _PART
    shape = (parts, _PART) if parts else (1, actual.numel())
    if actual.numel() < _FEWEST_OF_PART:
        return 0.0
    used = shape[0] * shape[1]
    rows = actual[:used].view(shape)
    wanted = expected[:used].view(shape)
    constant = (rows == rows[:, :1]).all(dim=1)
    if not bool(constant.any()):
        return 0.0
    differs = (wanted != wanted[:, :1]).float().mean(dim=1) > 0.5
    rms = wanted.abs().square().mean(dim=1).sqrt()
    return float(torch.where(constant & differs, rms, 0.0).max())


def _chunks(
    actual: torch.Tensor, expected: torch.Tensor
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Both, piece by piece on one device: as they are, since less crosses a link than of what is
    widened.
    """
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
