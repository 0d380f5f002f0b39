"""What the compiler made of a kernel, as facts: from its log, its machine code, and its PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from math import prod

from gpulab.analysis.kernels.accesses import accesses
from gpulab.analysis.kernels.instructions import count_ptx, count_sass, entry_body
from gpulab.analysis.kernels.occupancy import occupancy
from gpulab.cuda.compiler import compile_kernel
from gpulab.cuda.disassembler import sass_lines
from gpulab.protocol.kernels import KernelCode, KernelText

_DIGITS = 16
_REGISTER = re.compile(r"\b(U?[RP]|%[a-z]+)\d+(?:\.reuse)?")


def read_kernel(text: KernelText, arch: str, file: str = "kernel.cu") -> KernelCode:
    """Compile a kernel for an architecture, and say what came out. CompileError, NoCompilerError."""
    compiled = compile_kernel(text, arch, file)
    lines, body = sass_lines(compiled.cubin, compiled.entry), entry_body(compiled.ptx, compiled.entry)
    shared_bytes = compiled.shared_bytes + text.shared_bytes
    threads = text.threads
    of_warp = accesses(body, threads) if threads else None
    fits = occupancy(arch, prod(threads), compiled.registers, shared_bytes) if threads else None
    return KernelCode(
        name=text.name,
        arch=arch,
        threads=prod(threads) if threads else None,
        registers=compiled.registers,
        spill_bytes=compiled.spill_bytes,
        shared_bytes=shared_bytes,
        occupancy=fits.share if fits else None,
        limiter=fits.limiter if fits else None,
        instructions=count_ptx(body) if lines is None else count_sass(lines),
        read_from="PTX" if lines is None else "SASS",
        digest=digest(lines or body.splitlines(), compiled.entry),
        bank_conflicts=of_warp.bank_conflicts if of_warp else None,
        load_use=of_warp.load_use if of_warp else None,
        store_use=of_warp.store_use if of_warp else None,
    )


def digest(lines: Sequence[str], entry: str) -> str:
    """Of the code without names of kernels and numbers of registers: the compiler gives these out anew each time."""
    code = "\n".join(line.replace(entry, "") for line in lines if ".loc" not in line)
    return sha256(_REGISTER.sub(r"\1", code).encode()).hexdigest()[:_DIGITS]
