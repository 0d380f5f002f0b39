"""Triton's kernels: which ones ran in a block of code, and what Triton's compiler made of them, as facts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpulab.analysis.kernels.instructions import count_ptx, count_sass, entry_body
from gpulab.analysis.kernels.occupancy import occupancy
from gpulab.cuda.disassembler import sass_lines
from gpulab.cuda.reading import digest
from gpulab.protocol.kernels import KernelCode

_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)")
_LANES, _WORD = 32, 4


@contextmanager
def launched() -> Iterator[list[Any]]:
    """The compiled kernels that are launched inside, each once, in the order of their first launch.

    Triton keeps compiled kernels by their arguments in each function, and tells nobody which one ran: so every launch
    is looked at. Nothing is timed inside.
    """
    kernels: list[Any] = []
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None:
        yield kernels
        return
    original = jit.JITFunction.run

    def run(function: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = original(function, *args, **kwargs)
        if hasattr(kernel, "asm") and not any(kernel is other for other in kernels):
            kernels.append(kernel)
        return kernel

    jit.JITFunction.run = run
    try:
        yield kernels
    finally:
        jit.JITFunction.run = original


def read_triton_kernel(kernel: Any, *, registers: int | None = None, spill_bytes: int | None = None) -> KernelCode:
    """What is in a compiled kernel. Registers and spills are given, or asked of one that is loaded."""
    metadata, ptx = kernel.metadata, str(kernel.asm["ptx"])
    name, arch = str(metadata.name), f"sm_{metadata.target.arch}"
    lines, body = sass_lines(kernel.asm["cubin"], name), entry_body(ptx, name)
    found = _THREADS.search(ptx)
    threads = int(found[1]) if found else int(metadata.num_warps) * _LANES
    registers = int(kernel.n_regs) if registers is None else registers
    spill_bytes = int(kernel.n_spills) * _WORD if spill_bytes is None else spill_bytes
    fits = occupancy(arch, threads, registers, int(metadata.shared))
    return KernelCode(
        name=name,
        arch=arch,
        threads=threads,
        stages=int(metadata.num_stages),
        registers=registers,
        spill_bytes=spill_bytes,
        shared_bytes=int(metadata.shared),
        occupancy=fits.share if fits else None,
        limiter=fits.limiter if fits else None,
        instructions=count_ptx(body) if lines is None else count_sass(lines),
        read_from="PTX" if lines is None else "SASS",
        digest=digest(lines or body.splitlines(), name),
    )
