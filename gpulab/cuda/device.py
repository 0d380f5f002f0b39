"""Kernels on a GPU: the machine code that NVRTC made, loaded by CuPy, launched on torch's stream and memory."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpulab.cuda.compiler import Compiled, compile_kernel
from gpulab.protocol.kernels import KernelText

_LARGE_SHARED = 48 << 10
"""Dynamic shared memory above this has to be asked for."""


def load_on_device(text: KernelText, file: str) -> Callable[[tuple[int, int, int], tuple[Any, ...]], None]:
    """Compile a kernel for torch's current device, and load it."""
    import cupy
    import torch

    index = torch.cuda.current_device()
    compiled = compile_kernel(text, current_arch(), file)
    convert = _converters(compiled)
    with cupy.cuda.Device(index), tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        Path(binary.name).write_bytes(compiled.cubin)
        kernel = cupy.RawModule(path=binary.name).get_function(compiled.entry)
        if text.shared_bytes + compiled.shared_bytes > _LARGE_SHARED:
            kernel.max_dynamic_shared_size_bytes = text.shared_bytes
    threads = text.threads or (1, 1, 1)
    streams: dict[int, Any] = {}

    def launch(blocks: tuple[int, int, int], arguments: tuple[Any, ...]) -> None:
        if len(arguments) != len(convert):
            raise TypeError(f"{text.name} takes {len(convert)} arguments, and got {len(arguments)}")
        converted = tuple(to(argument) for to, argument in zip(convert, arguments, strict=True))
        address = torch.cuda.current_stream(index).cuda_stream
        if address not in streams:
            streams[address] = cupy.cuda.ExternalStream(address, index)
        with cupy.cuda.Device(index), streams[address]:
            kernel(blocks, threads, converted, shared_mem=text.shared_bytes)

    return launch


def current_arch() -> str:
    """The architecture of torch's current device, as the compiler names it."""
    import torch

    return "sm_{}{}".format(*torch.cuda.get_device_capability())


def _converters(compiled: Compiled) -> list[Callable[[Any], Any]]:
    """What makes of an argument what the kernel declares: CuPy takes a Python int for 64 bits, and a float too."""
    import numpy as np

    numbers: dict[str, Callable[[Any], Any]] = {
        "f32": np.float32,
        "f64": np.float64,
        "f16": np.float16,
        "u16": np.int16,
        "s16": np.int16,
        "u32": _bits_32,
        "s32": _bits_32,
        "b32": _bits_32,
        "u64": np.int64,
        "s64": np.int64,
        "b64": np.int64,
        "u8": np.int8,
        "s8": np.int8,
    }

    def converter(place: int, kind: str) -> Callable[[Any], Any]:
        if kind not in numbers:
            raise TypeError(f"parameter {place + 1} of {compiled.name} is a struct ({kind}): pass a pointer to one")
        number = numbers[kind]

        def to(argument: Any) -> Any:
            if hasattr(argument, "data_ptr"):
                if kind not in ("u64", "b64"):
                    raise TypeError(f"argument {place + 1} of {compiled.name} is a tensor, and the kernel takes {kind}")
                return np.uint64(argument.data_ptr())
            return number(argument)

        return to

    return [converter(place, kind) for place, kind in enumerate(compiled.parameters)]


def _bits_32(value: Any) -> Any:
    import numpy as np

    return np.uint32(int(value) & 0xFFFFFFFF) if -(2**31) <= int(value) < 2**32 else _too_large(value)


def _too_large(value: Any) -> Any:
    raise OverflowError(f"{value} needs more than the 32 bits that the kernel declares: declare it long long")
