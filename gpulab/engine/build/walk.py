"""From what a scenario hands over as inputs, state or output to the tensors in it."""

from __future__ import annotations

import sys
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from math import isfinite
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from gpulab.core.statuses import CheckKind
from gpulab.engine.processes.failure import RefusedError
from gpulab.engine.step_clock import value_later
from gpulab.features.checks.findings import computes_when_read

_WITHOUT_ARITHMETIC = {
    getattr(torch, name)
    for name in ("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float4_e2m1fn_x2")
    if hasattr(torch, name)
}
_ARRAYS = ("numpy", "cupy", "jax", "jaxlib")
"""Packages whose arrays have their values when they are handed over, or are waited for."""
_TORCH_TYPES = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_TEXT_MODULES = ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid")
"""Modules whose values are equal where their texts are."""
_FEW = 16
"""Numbers of a list that are compared one by one: more of them are data."""
_WIDEST = {"f": 8, "c": 16}
"""Bytes of a kind of number beyond which torch has none."""
_NOT_COMPARED = (
    "an object of class {} is not a tensor, an array, a number, a text, or a collection of them"
)


def is_of_scenario(value: object) -> bool:
    """Return whether the class of a value stands in a scenario, also in one of a package."""
    return type(value).__module__.rpartition(".")[2].startswith(("_scenario_", "_answer"))


class Walk:
    """Through a tree of lists, mappings, dataclasses, modules and optimizers to its tensors.

    `live`: to those that can be written to, past numbers and texts.
    """

    def __init__(self, number: torch.dtype, *, live: bool = False) -> None:
        self._number = number
        self._live = live
        self._count = 0
        self.numbers = self.read_only = False
        """What a live tree holds that cannot be written to."""
        self.not_exchanged = ""
        """What of that is no better in a copy."""
        self._not_ours: list[tuple[int, int]] = []

    def tensors(self, tree: Any) -> Iterator[torch.Tensor]:
        if isinstance(tree, torch.Tensor):
            yield from self._walk_tensor(tree)
        elif isinstance(tree, torch.nn.Module):
            yield from self._walk_each([*tree.parameters(), *tree.buffers()])
        elif isinstance(tree, torch.optim.Optimizer):
            yield from self._walk_each(_tensors_of(tree))
        elif isinstance(tree, Mapping):
            yield from self._walk_mapping(tree)
        elif is_dataclass(tree) and not isinstance(tree, type):
            values = {field.name: getattr(tree, field.name) for field in fields(tree)}
            yield from self._walk_each(_sorted_values(values))
        elif isinstance(tree, SimpleNamespace):
            yield from self._walk_mapping(vars(tree))
        elif isinstance(tree, (list, tuple, deque, array)):
            yield from self._walk_list(list(tree))
        elif isinstance(tree, (set, frozenset)):
            yield from self._walk_set(tree)
        elif _is_array(tree):
            yield from self._walk_array(tree)
        elif not self._live and (value := value_later(tree)):
            yield from self.tensors(value())
        elif hasattr(tree, "__dlpack__"):
            yield self._dlpack_tensor(tree)
        else:
            yield from self._walk_value(tree)

    def _leaf(self, tensor: torch.Tensor) -> torch.Tensor:
        self._count += 1
        return tensor

    def _walk_each(self, values: Iterable[Any]) -> Iterator[torch.Tensor]:
        for value in values:
            yield from self.tensors(value)

    def _walk_tensor(self, tensor: torch.Tensor) -> Iterator[torch.Tensor]:
        is_wrapper = _is_own(tensor) and (not _has_values(tensor))
        if self._live and is_wrapper and (inner := _inner_tensors(tensor)):
            yield from self._walk_each(inner)
            return
        if not self._live and (is_wrapper or is_of_scenario(tensor)):
            self._refuse(type(tensor))
        with torch._C.DisableTorchFunctionSubclass():
            # no part of a graph, and no version counter: restoring must not upset autograd
            plain = tensor.data.as_subclass(torch.Tensor) if _is_own(tensor) else tensor.data
        parts = _sparse_parts(plain)
        if self._live:
            for part in map(_dense, parts):
                self.read_only |= self._is_of_file(part)
                yield self._leaf(part)
        else:
            dense = _dense(plain.to_dense() if len(parts) > 1 else plain)
            yield self._leaf(dense.clone() if _is_foreign(dense) else dense)

    def _is_of_file(self, tensor: torch.Tensor) -> bool:
        """Return whether writing to it writes to a file or others' memory, or ends this process."""
        # page-locked memory is mapped as if others had it too
        if not _is_foreign(tensor) or tensor.is_pinned():
            return False
        self._not_ours = self._not_ours or _read_only_or_shared()
        address = tensor.untyped_storage().data_ptr()
        return any(start <= address < end for start, end in self._not_ours)

    def _walk_mapping(self, tree: Mapping[Any, Any]) -> Iterator[torch.Tensor]:
        if is_of_scenario(tree) and not isinstance(tree, dict):
            self._refuse(type(tree))
        if not self._live and _is_table(tree):
            yield self._leaf(_digest(_text_of(sorted(map(_text_of, tree)))))
        yield from self._walk_each(_sorted_values(tree))

    def _walk_list(self, values: list[Any]) -> Iterator[torch.Tensor]:
        kinds = set(map(type, values))
        if self._live or len(values) <= _FEW:
            yield from self._walk_each(values)
        elif all(isinstance(value, str) for value in values):
            yield self._leaf(_digest(_text_of(values)))
        elif len(kinds) == 1 and kinds <= {bool, int, float}:
            yield self._leaf(self._numbers(values))
        else:
            yield from self._walk_each(values)

    def _walk_set(self, values: Set[Any]) -> Iterator[torch.Tensor]:
        if self._live:
            return
        plain = [value.item() if _is_scalar(value) else value for value in values]
        if plain and all(type(value) in (int, float) for value in plain):
            yield from self._walk_list(sorted(plain))
        else:
            yield self._leaf(_digest(_text_of(values)))

    def _walk_array(self, values: Any) -> Iterator[torch.Tensor]:
        """Yield the tensors of an array of NumPy. What is read-only, reversed, of another byte
        order or in memory of others is copied: torch writes through a read-only array, and a
        reversed one ends the process.
        """
        if not self._live:
            self._require_values(values, _ARRAYS)
        elif not _is_exchangeable(values.dtype):
            self.read_only = True
            dtype = "a structured dtype" if values.dtype.names else f"dtype {values.dtype}"
            self.not_exchanged = f"an array of {dtype}"
        numpy = sys.modules["numpy"]
        if isinstance(values, numpy.ma.MaskedArray):
            self.read_only = True
            self.not_exchanged = "a masked array"
            mask = numpy.ma.getmaskarray(values)
            # what masks nothing is its data; masks of records cannot be asked for any()
            masks = [mask] if b"\1" in mask.tobytes() else []
            yield from self._walk_each([values.filled(0), *masks])
        elif values.dtype.names:
            yield from self._walk_mapping({name: values[name] for name in values.dtype.names})
        elif _shares_memory(values):
            yield self._leaf(torch.from_numpy(numpy.asarray(values)))
        elif self._live:
            self.read_only = True
            yield from _copied(values)
        else:
            yield from map(self._leaf, _copied(values) or self._walk_list(values.tolist()))

    def _dlpack_tensor(self, values: Any) -> torch.Tensor:
        if not self._live:
            self._require_values(values, _ARRAYS)
        tensor = _dense(torch.utils.dlpack.from_dlpack(values))
        # an array of JAX must never change, and memory of others is not the lab's
        is_kept = self._live or type(values).__module__.startswith("cupy")
        return self._leaf(tensor if is_kept else tensor.clone())

    def _walk_value(self, value: Any) -> Iterator[torch.Tensor]:
        is_number = isinstance(value, (bool, int, float, complex)) or _is_scalar(value)
        if self._live:
            self.numbers |= is_number
            if not is_number and not _is_text(value):
                raise TypeError(_NOT_COMPARED.format(type(value).__name__))
        elif value is None:
            yield self._leaf(torch.empty(0, dtype=torch.uint8))
        elif is_number:
            yield self._leaf(self._number_of(value))
        else:
            yield self._leaf(_digest(_text_of(value)))

    def _number_of(self, value: Any) -> torch.Tensor:
        # float64 of NumPy is a float of Python
        if _is_scalar(value) and not isinstance(value, (float, complex)):
            (tensor,) = _copied(value) or [_digest(_text_of(value.item()))]
            return tensor
        return self._numbers([value])[0]

    def _numbers(self, values: list[Any]) -> torch.Tensor:
        """Python's numbers of one type. A float that float32 does not hold was not made by it."""
        if isinstance(values[0], complex):
            dtype = torch.complex64 if self._number == torch.float32 else torch.complex128
            return torch.tensor(values, dtype=dtype)
        if isinstance(values[0], float):
            sizes = [abs(value) for value in values if value and isfinite(value)]
            held = all(1e-30 <= size <= 3e38 for size in sizes)
            return torch.tensor(values, dtype=self._number if held else torch.float64)
        if isinstance(values[0], bool) or max(map(abs, values)) < 1 << 63:
            return torch.tensor(values)
        return torch.stack([_digest(str(value)) for value in values])

    def _require_values(self, values: Any, packages: tuple[str, ...]) -> None:
        """RefusedError for a kind of tensor that code of a scenario made up: it may compute when it
        is looked at.
        """
        kind = type(values)
        if kind.__module__.partition(".")[0] not in packages or kind.__module__ not in sys.modules:
            self._refuse(kind)

    def _refuse(self, kind: type) -> None:
        reason = computes_when_read(kind=kind.__name__, output=self._count + 1)
        raise RefusedError(reason, check=CheckKind.CONTEXT)


def _tensors_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    values = tree_leaves([list(state.values()) for state in optimizer.state.values()])
    return [value for value in values if isinstance(value, torch.Tensor)]


def _is_own(tensor: torch.Tensor) -> bool:
    """Return whether it is of a class that is none of torch's."""
    return type(tensor).__module__.partition(".")[0] != "torch"


def _read_only_or_shared() -> list[tuple[int, int]]:
    """Addresses of this process that it may not write to, or that a file or others have too."""
    found = []
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        addresses, access = line.split(maxsplit=2)[:2]
        if access[1] != "w" or access[3] == "s":
            start, _, end = addresses.partition("-")
            found.append((int(start, 16), int(end, 16)))
    return found


def _is_foreign(tensor: torch.Tensor) -> bool:
    """Return whether its memory is not torch's: it may be bytes or a file that nobody writes to."""
    return tensor.device.type == "cpu" and not tensor.untyped_storage().resizable()


def _inner_tensors(tensor: torch.Tensor) -> list[torch.Tensor]:
    if hasattr(tensor, "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return [getattr(tensor, name) for name in names]
    return [value for value in vars(tensor).values() if isinstance(value, torch.Tensor)]


def _sparse_parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The tensors in plain memory that a sparse one consists of; of any other, itself."""
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    return (tensor,)


def _sorted_values(tree: Mapping[Any, Any]) -> list[Any]:
    """Values by their names, in whatever order they were put in."""
    if all(isinstance(name, str) for name in tree):
        return [tree[name] for name in sorted(tree)]
    return [tree[name] for name in sorted(tree, key=_text_of)]


def _is_table(tree: Mapping[Any, Any]) -> bool:
    """Return whether its keys are data, as of a Counter. A few names are those of fields, which
    another variant may call otherwise.
    """
    names = len(tree) <= _FEW and all(isinstance(key, str) and key.isidentifier() for key in tree)
    return bool(tree) and (isinstance(tree, Counter) or not names)


def _is_text(value: Any) -> bool:
    """Return whether it is a value of Python that its text tells from every other."""
    return (
        value is None
        or isinstance(value, (str, bytes, bytearray, memoryview, range, slice, Enum, *_TORCH_TYPES))
        or type(value).__module__.partition(".")[0] in _TEXT_MODULES
    )


def _text_of(value: Any) -> str:
    """The same for equal values. TypeError for what has no such text."""
    if _is_scalar(value):  # before what it is as well: a text, or a float
        value = value.item()
    if isinstance(value, (set, frozenset)):
        return f"{{{','.join(sorted(map(_text_of, value)))}}}"
    if isinstance(value, (list, tuple)):
        return f"({','.join(map(_text_of, value))})"
    if isinstance(value, (bytearray, memoryview)):
        return repr(bytes(value))
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}"
    if is_dataclass(value) and not isinstance(value, type):
        return _text_of([getattr(value, field.name) for field in fields(value)])
    if isinstance(value, (bool, int, float, complex)) or _is_text(value):
        return repr(value)
    if _is_scalar(value):
        return repr(value.item())
    raise TypeError(_NOT_COMPARED.format(type(value).__name__))


def _digest(text: str) -> torch.Tensor:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return torch.tensor(int.from_bytes(digest, signed=True))


def _is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def _is_exchangeable(dtype: Any) -> bool:
    """Return whether torch can share arrays of a dtype; of records, each field."""
    if dtype.names:
        parts = [field[0].base for field in dtype.fields.values()]
        return all(_is_exchangeable(part) and not dtype.itemsize % part.itemsize for part in parts)
    fits = dtype.itemsize <= _WIDEST.get(dtype.kind, 8)
    return bool(dtype.isnative and dtype.kind in "biufc" and fits)


def _shares_memory(values: Any) -> bool:
    """Return whether torch can share an array, and may write to it: the memory is one that NumPy or
    torch made, and no text of bytes, no file and no other process has it too.
    """
    if not values.flags.writeable or not _is_exchangeable(values.dtype):
        return False
    if any(stride < 0 or stride % values.itemsize for stride in values.strides):
        return False
    owner = values
    while _is_array(owner):
        if isinstance(owner, sys.modules["numpy"].memmap):
            return False
        if owner.base is None:
            return True
        owner = owner.base
    return isinstance(owner, torch.Tensor) or type(owner).__name__ == "PyCapsule"


def _copied(values: Any) -> list[torch.Tensor]:
    """An array or scalar of NumPy as a tensor of its own; nothing of objects or texts."""
    numpy = sys.modules["numpy"]
    values = numpy.array(values)
    kind = values.dtype.kind
    if kind == "V" and isinstance(getattr(torch, values.dtype.name, None), torch.dtype):
        bits = numpy.ascontiguousarray(values).view(f"u{values.itemsize}")
        return [torch.from_numpy(bits).view(getattr(torch, values.dtype.name))]
    if kind in "Mm":
        return [torch.from_numpy(values.astype(values.dtype.newbyteorder("=")).view("int64"))]
    if kind not in "biufc":
        return []
    dtype = values.dtype.newbyteorder("=")
    if values.itemsize > _WIDEST.get(kind, 8):
        dtype = numpy.dtype("complex128" if kind == "c" else "float64")
    return [torch.from_numpy(values.astype(dtype, order="C"))]


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor. TypeError where its values lie in no plain memory: torch raises, or dies."""
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
