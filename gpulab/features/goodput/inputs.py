"""What a recording says of the inputs of an operation: sizes, types, and the values of scalars."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from gpulab.core.limits import LARGEST_INTEGER, TENSOR_DIMS

_ELEMENTS = {
    "float": ("fp32", 4),
    "double": ("fp64", 8),
    "c10::Half": ("fp16", 2),
    "c10::BFloat16": ("bf16", 2),
    "c10::Float8_e4m3fn": ("fp8", 1),
    "c10::Float8_e5m2": ("fp8", 1),
    "c10::complex<float>": ("complex64", 8),
    "c10::complex<double>": ("complex128", 16),
    "long int": ("int64", 8),
    "long": ("int64", 8),
    "__int64": ("int64", 8),
    "int": ("int32", 4),
    "short int": ("int16", 2),
    "short": ("int16", 2),
    "signed char": ("int8", 1),
    "unsigned char": ("uint8", 1),
    "bool": ("bool", 1),
}
"""By the name of a type in C++, as the profiler writes it: the lab's name, and bytes."""
_FLOATING = ("fp64", "fp32", "bf16", "fp16", "fp8")
INPUTS = ("Input Dims", "Input Strides", "Input type", "Concrete Inputs")
"""What a recording with shapes has of each operation."""
_INTEGERS = re.compile(r"-?\d+(?:, ?-?\d+)*")
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """One input that is a tensor. `stored` is how many of its elements there are in memory: what
    was expanded has fewer.
    """

    shape: Shape
    dtype: str
    element_bytes: int
    stored: int

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """That must be read of it."""
        return self.stored * self.element_bytes

    @property
    def is_floating(self) -> bool:
        return self.dtype in _FLOATING


class Inputs:
    """The inputs of one operation, by their place; a place without a tensor has None."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        dims = arguments.get("Input Dims")
        types = arguments.get("Input type")
        strides = arguments.get("Input Strides")
        values = arguments.get("Concrete Inputs")
        whole = isinstance(dims, list) and isinstance(types, list) and len(dims) == len(types)
        self._dims: list[Any] = dims if whole and isinstance(dims, list) else []
        self._types: list[Any] = types if whole and isinstance(types, list) else []
        self._strides: list[Any] = strides if isinstance(strides, list) else []
        self._values: list[Any] = values if isinstance(values, list) else []

    @cached_property
    def all(self) -> Sequence[Tensor | None]:
        return [self._tensor(place) for place in range(len(self._dims))]

    @property
    def tensors(self) -> list[Tensor]:
        """Those that are tensors, in their order."""
        return [tensor for tensor in self.all if tensor is not None]

    @property
    def has_lists(self) -> bool:
        """Return whether there are lists of tensors, of which no types are recorded."""
        return "TensorList" in self._types

    @property
    def dtype(self) -> str | None:
        """Return the dtype of the first floating-point tensor, else of the first tensor."""
        tensors = self.tensors
        floating = [tensor for tensor in tensors if tensor.is_floating]
        return next((tensor.dtype for tensor in (*floating, *tensors)), None)

    def at(self, place: int) -> Tensor:
        """ValueError where there is no tensor."""
        tensor = self.all[place] if place < len(self.all) else None
        if tensor is None:
            raise ValueError(f"no tensor at {place}")
        return tensor

    def bytes_at(self, *places: int) -> int:
        """Return the bytes of the tensors at these places."""
        tensors = [self.all[place] for place in places if place < len(self.all)]
        return sum(tensor.bytes for tensor in tensors if tensor is not None)

    def text(self, place: int) -> str:
        """The value of a scalar, as it was recorded; empty where it was not."""
        value = self._values[place] if place < len(self._values) else ""
        return value if isinstance(value, str) else ""

    def numbers(self, place: int) -> Shape:
        """A list of whole numbers, or one. ValueError where there is none."""
        text = self.text(place).strip("[] ")
        if not _INTEGERS.fullmatch(text):
            raise ValueError(f"no whole numbers at {place}")
        return tuple(int(number) for number in text.split(","))

    def flag(self, place: int) -> bool:
        return self.text(place) in ("True", "true", "1")

    def _tensor(self, place: int) -> Tensor | None:
        kind = self._types[place]
        shape = self._dims[place]
        if not isinstance(kind, str) or kind not in _ELEMENTS or not _is_shape(shape):
            return None
        dtype, element_bytes = _ELEMENTS[kind]
        strides = self._strides[place] if place < len(self._strides) else None
        stored = prod(shape)
        if isinstance(strides, list) and len(strides) == len(shape):
            pairs = zip(shape, strides, strict=True)
            stored = prod(size for size, stride in pairs if stride or not size)
        return Tensor(tuple(shape), dtype, element_bytes, stored)


def _is_shape(value: Any) -> bool:
    if not isinstance(value, list) or len(value) > TENSOR_DIMS:
        return False
    return all(type(size) is int and 0 <= size <= LARGEST_INTEGER for size in value)
