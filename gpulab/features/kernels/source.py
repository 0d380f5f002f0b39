"""What a scenario's author writes for a CUDA C++ kernel: its source, and its launch."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from operator import index
from pathlib import Path
from typing import Any

from gpulab.core.payloads import KernelText
from gpulab.features.kernels.compiler import Compiled, compile_kernel, literal_line

_POINTER = 64
_LARGE_SHARED = 48 << 10
"""Dynamic shared memory above this has to be asked for."""


def load(text: KernelText, file: str) -> Callable[[tuple[int, int, int], tuple[Any, ...]], None]:
    """Compile a kernel for torch's current device, and load it; what launches it."""
    import cupy
    import torch

    device = torch.cuda.current_device()
    compiled = compile_kernel(text, current_arch(), file)
    convert = _converters(compiled)
    with cupy.cuda.Device(device), tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        Path(binary.name).write_bytes(compiled.cubin)
        kernel = cupy.RawModule(path=binary.name).get_function(compiled.entry)
        if text.shared_bytes + compiled.shared_bytes > _LARGE_SHARED:
            kernel.max_dynamic_shared_size_bytes = text.shared_bytes
    threads = text.threads or (1, 1, 1)
    # Asking for a stream object takes as long as all else that a launch does: Triton asks for its
    # address, too.
    stream_address = torch._C._cuda_getCurrentRawStream
    streams: dict[int, Any] = {}

    def launch(blocks: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
        if len(arguments) != len(convert):
            raise TypeError(f"{text.name} takes {len(convert)} arguments, and got {len(arguments)}")
        converted = tuple(to(argument) for to, argument in zip(convert, arguments, strict=True))
        if torch.cuda.current_device() != device:
            raise ValueError(f"{text.name} is loaded on cuda:{device}: launch it there")
        address = stream_address(device)
        if address not in streams:
            streams[address] = cupy.cuda.ExternalStream(address, device)
        kernel(blocks, threads, converted, shared_mem=text.shared_bytes, stream=streams[address])

    return launch


def current_arch() -> str:
    """The architecture of torch's current device, as the compiler names it."""
    import torch

    return "sm_{}{}".format(*torch.cuda.get_device_capability())


def _converters(compiled: Compiled) -> list[Callable[[Any], Any]]:
    """Return what converts an argument: CuPy takes a Python int or float for 64 bits."""
    import numpy as np

    floats = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    integers = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}

    def converter(place: int, kind: str) -> Callable[[Any], Any]:
        where = f"argument {place + 1} of {compiled.name}"
        bits = int(kind[1:]) if kind[1:].isdigit() and kind[0] in "usb" else 0
        if kind not in floats and bits not in integers:
            raise TypeError(f"{where} is a struct ({kind}): pass a pointer to one")

        def to(argument: Any) -> Any:
            address = _address(argument)
            if address is not None and bits != _POINTER:
                raise TypeError(f"{where} is an array, and the kernel takes {kind}")
            if kind in floats:
                return floats[kind](argument)
            if address is not None:
                return address  # CuPy takes a Python int for 64 bits
            return integers[bits](_whole(argument, bits, where))

        return to

    return [converter(place, kind) for place, kind in enumerate(compiled.parameters)]


def _address(argument: Any) -> int | None:
    """Return where a tensor, or another array on the device, begins; None of a number."""
    if hasattr(argument, "data_ptr"):
        return int(argument.data_ptr())
    interface = getattr(argument, "__cuda_array_interface__", None)
    return int(interface["data"][0]) if interface else None


def _whole(value: Any, bits: int, where: str) -> int:
    """A whole number as so many bits, signed or not."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{where} is {value!r}, and the kernel takes a whole number") from None
    if not -(1 << (bits - 1)) <= number < 1 << bits:
        raise OverflowError(
            f"{where} is {number}, which needs more than the {bits} bits that the kernel declares"
        )
    return number & ((1 << bits) - 1)


Dimensions = int | Sequence[int]
_MOST_DIMENSIONS = 3
_made: dict[tuple[KernelText, str], None] = {}
"""Kernels, with their files, in the order in which they were made."""


class CudaSource:
    """CUDA C++ of one or more kernels, templates included: a literal of the scenario's file, at its
    top level.

    `options` are those of NVRTC beside `-std=c++17` and the architecture, such as
    `("--use_fast_math",)`. What the compiler reports has the lines of the scenario's file.
    """

    def __init__(self, code: str, options: Sequence[str] = ()) -> None:
        self.code = code
        self.options = tuple(map(str, options))
        frame = sys._getframe(1)
        self.file = frame.f_code.co_filename
        called = frame.f_lineno
        self.line = literal_line(code, self.file) or called

    def kernel(self, name: str, threads: Dimensions = 256, shared_bytes: int = 0) -> Kernel:
        """One kernel by its name, of a template with its arguments: `cuda.kernel("copy<float4>",
        threads=block)`.

        `threads` of a block (x, or up to (x, y, z)), `shared_bytes` of dynamic shared memory. Write
        the call in the variant's function, with literals, parameters and arithmetic on them: so the
        lab can say what the compiler makes of it without running the file. CompileError with the
        line where it does not compile.
        """
        return Kernel(
            self,
            KernelText(
                name, self.code, self.line, self.options, _three(threads), int(shared_bytes)
            ),
        )


class Kernel:
    """A compiled kernel. `kernel(blocks, *arguments)` launches it on torch's current stream, and
    returns at once.

    Arguments are tensors, of which it gets the address of the first element, and numbers, which
    become what the kernel declares. The caller keeps tensors alive and contiguous, as the kernel
    expects them.
    """

    def __init__(self, source: CudaSource, text: KernelText) -> None:
        self._launch = load(text, source.file)
        _made[text, source.file] = None

    def __call__(self, blocks: Dimensions, *arguments: Any) -> None:
        self._launch(_three(blocks), arguments)


def kernels_made(keep: Iterable[tuple[KernelText, str]] = ()) -> list[tuple[KernelText, str]]:
    """The kernels that were made since the last call, with their files, each once. `keep`: which of
    them the next call has again.
    """
    made = list(_made)
    _made.clear()
    _made.update(dict.fromkeys(keep))
    return made


def _three(dimensions: Dimensions) -> tuple[int, int, int]:
    given = tuple(dimensions) if isinstance(dimensions, Sequence) else (dimensions,)
    if not 0 < len(given) <= _MOST_DIMENSIONS or any(int(size) < 1 for size in given):
        raise ValueError(
            f"{dimensions!r} are no dimensions: write 1 to 3 whole numbers of 1 or more"
        )
    x, y, z = (*map(int, given), 1, 1)[:_MOST_DIMENSIONS]
    return x, y, z
