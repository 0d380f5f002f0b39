"""What the author of a scenario writes to have a CUDA C++ kernel: its source, its name, and a call that launches it."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from typing import Any

from gpulab.protocol.kernels import KernelText

Dimensions = int | Sequence[int]
_MOST_DIMENSIONS = 3
_made: dict[tuple[KernelText, str], None] = {}
"""Kernels, with their files, in the order in which they were made."""


class CudaSource:
    """CUDA C++ of one or more kernels, templates included: a literal of the scenario's file, at its top level.

    `options` are those of NVRTC beside `-std=c++17` and the architecture, such as `("--use_fast_math",)`. What the
    compiler reports has the lines of the scenario's file.
    """

    def __init__(self, code: str, options: Sequence[str] = ()) -> None:
        self.code, self.options = code, tuple(options)
        frame = sys._getframe(1)
        self.file, called = frame.f_code.co_filename, frame.f_lineno
        self.line = _line_of(code, self.file) or called

    def kernel(self, name: str, threads: Dimensions = 256, shared_bytes: int = 0) -> Kernel:
        """One kernel by its name, of a template with its arguments: `cuda.kernel("copy<float4>", threads=block)`.

        `threads` of a block (x, or up to (x, y, z)), `shared_bytes` of dynamic shared memory. Write the call in the
        variant's function, with literals, parameters and arithmetic on them: so the lab can say what the compiler
        makes of it without running the file. CompileError with the line where it does not compile.
        """
        return Kernel(self, KernelText(name, self.code, self.line, self.options, _three(threads), int(shared_bytes)))


class Kernel:
    """A compiled kernel. `kernel(blocks, *arguments)` launches it on torch's current stream, and returns at once.

    Arguments are tensors, of which it gets the address of the first element, and numbers, which become what the
    kernel declares. The caller keeps tensors alive and contiguous, as the kernel expects them.
    """

    def __init__(self, source: CudaSource, text: KernelText) -> None:
        self._launch = load(text, source.file)
        _made[text, source.file] = None

    def __call__(self, blocks: Dimensions, *arguments: Any) -> None:
        self._launch(_three(blocks), arguments)


def load(text: KernelText, file: str) -> Callable[[tuple[int, int, int], tuple[Any, ...]], None]:
    """Compile a kernel for torch's current device, and load it; what launches it."""
    from gpulab.cuda.device import load_on_device

    return load_on_device(text, file)


def kernels_made() -> list[tuple[KernelText, str]]:
    """The kernels that were made since the last call, with their files, each once."""
    made = list(_made)
    _made.clear()
    return made


def remember(made: list[tuple[KernelText, str]]) -> None:
    """As if they had been made now."""
    _made.update(dict.fromkeys(made))


def _three(dimensions: Dimensions) -> tuple[int, int, int]:
    given = tuple(dimensions) if isinstance(dimensions, Sequence) else (dimensions,)
    if not 0 < len(given) <= _MOST_DIMENSIONS or any(int(size) < 1 for size in given):
        raise ValueError(f"{dimensions!r} are no dimensions: write 1 to 3 whole numbers of 1 or more")
    x, y, z = (*map(int, given), 1, 1)[:_MOST_DIMENSIONS]
    return x, y, z


def _line_of(code: str, file: str) -> int | None:
    """The line at which the literal begins in its file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    literals = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value == code)
    return next((node.lineno for node in literals), None)
