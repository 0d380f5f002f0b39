"""Tensors of a rank in memory that rank 0 has mapped too, one behind the other.

On a GPU its pages are locked, so that copies run at the speed of the bus: reading outputs of a GiB
through a file took most of a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from math import prod
from typing import Any

import torch

from gpulab.engine.build.tensors import kept

Layout = tuple[torch.dtype, torch.Size]
_ALIGNED = 64
"""Bytes; of any dtype a multiple."""


class SharedTensors:
    """One end of it; `file` is a descriptor of memory that both have."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._bytes = torch.empty(0, dtype=torch.uint8)
        self._is_locked = False

    def write(self, tensors: Sequence[torch.Tensor]) -> list[Layout]:
        layouts = [(tensor.dtype, tensor.shape) for tensor in tensors]
        for place, tensor in zip(self._places(layouts), tensors, strict=True):
            place.copy_(tensor.detach())
        return layouts

    def read(self, layouts: Sequence[Layout]) -> list[torch.Tensor]:
        """Copies of what the other end has written: on the GPU in use where they are large."""
        return kept(list(self._places(layouts)))

    def _places(self, layouts: Sequence[Layout]) -> Iterator[torch.Tensor]:
        sizes = [prod(shape) * dtype.itemsize for dtype, shape in layouts]
        self._map(sum(size + _ALIGNED for size in sizes))
        begin = 0
        for (dtype, shape), size in zip(layouts, sizes, strict=True):
            yield self._bytes[begin : begin + size].view(dtype).view(shape)
            begin += -(-size // _ALIGNED) * _ALIGNED

    def _map(self, size: int) -> None:
        """Map at least so many bytes; a smaller mapping is replaced."""
        if size <= self._bytes.numel():
            return
        if self._is_locked:
            _cudart().cudaHostUnregister(self._bytes.data_ptr())
        if size > os.fstat(self._file).st_size:
            os.ftruncate(self._file, size)
        path = f"/proc/self/fd/{self._file}"
        self._bytes = torch.from_file(path, shared=True, size=size, dtype=torch.uint8)
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            error = _cudart().cudaHostRegister(self._bytes.data_ptr(), size, 0)
            self._is_locked = error == _cudart().cudaError.success
            if not self._is_locked:
                # the next launch of a kernel would raise this error as its own
                with suppress(RuntimeError):
                    torch.zeros(1, device="cuda")


def _cudart() -> Any:
    return torch.cuda.cudart()  # type: ignore[no-untyped-call]
