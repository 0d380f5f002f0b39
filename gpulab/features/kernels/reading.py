"""What the compiler made of a kernel, as facts: from its log, its machine code, and its PTX."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from hashlib import sha256
from importlib import metadata, util
from math import prod
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.core.payloads import KernelCode, KernelText
from gpulab.features.kernels.compiler import compile_kernel
from gpulab.features.kernels.instructions import count_sass, entry_body, occupancy
from gpulab.features.kernels.memory_accesses import accesses
from gpulab.proc.spawn import HangsError, capture

_PACKAGES = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12")
_CACHED = 256


class _Instruction(msgspec.Struct):
    opcode: str
    operands: str = ""
    predicate: str = ""


class _Function(msgspec.Struct, rename={"name": "function-name", "lines": "sass-instructions"}):
    name: str = ""
    lines: list[_Instruction] = []


@lru_cache(1)
def disassembler() -> str | None:
    """The path of the program, None where there is none."""
    for package in _PACKAGES:
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == "nvdisasm":
                return str(file.locate())
    spec = util.find_spec("triton")
    bundled = [
        Path(place) / "backends" / "nvidia" / "bin"
        for place in (spec and spec.submodule_search_locations) or ()
    ]
    toolkit = [Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin"]
    paths = (shutil.which("nvdisasm", path=str(folder)) for folder in (*bundled, *toolkit))
    return next((path for path in paths if path), None) or shutil.which("nvdisasm")


@lru_cache(_CACHED)
def sass_lines(cubin: bytes, entry: str) -> tuple[str, ...] | None:
    """A kernel's instructions, such as `@P0 LDG.E.128 R4, desc[UR4][R2.64]`; None: unreadable."""
    program = disassembler()
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        Path(binary.name).write_bytes(cubin)
        command = [program, "-json", binary.name]
        try:
            done = capture(command, 30.0)
        # it is listed, and not there or not for this machine
        except (OSError, HangsError):
            return None
    if done.code != 0:
        return None
    try:
        _, functions = msgspec.json.decode(done.output, type=tuple[object, list[_Function]])
    except msgspec.MsgspecError:
        return None
    lines = next((function.lines for function in functions if function.name == entry), None)
    return None if lines is None else _without_padding(lines)


def _without_padding(lines: list[_Instruction]) -> tuple[str, ...]:
    """Without what fills the last cache line: a branch to itself, and nothing."""
    while lines and lines[-1].opcode == "NOP":
        lines = lines[:-1]
    if len(lines) > 1 and lines[-1].opcode == "BRA":
        lines = lines[:-1]
    return tuple(
        " ".join(filter(None, (line.predicate, line.opcode, line.operands))) for line in lines
    )


_DIGITS = 16
_REGISTER = re.compile(r"\b(U?[RP]|%[a-z]+)\d+(?:\.reuse)?")


def read_kernel(text: KernelText, arch: str, file: str = "kernel.cu") -> KernelCode:
    """Compile a kernel, and say what came out. CompileError, NoCompilerError."""
    compiled = compile_kernel(text, arch, file)
    code = _code(
        KernelCode(
            name=text.name,
            arch=arch,
            threads=prod(text.threads) if text.threads else None,
            registers=compiled.registers,
            spill_bytes=compiled.spill_bytes,
            shared_bytes=compiled.shared_bytes + text.shared_bytes,
        ),
        compiled.cubin,
        compiled.ptx,
        compiled.entry,
    )
    if text.threads is None:
        return code
    memory = accesses(entry_body(compiled.ptx, compiled.entry), text.threads)
    return replace(code, **memory._asdict())


def _code(launched: KernelCode, cubin: bytes, ptx: str, entry: str) -> KernelCode:
    """The same with its occupancy, and what is in its machine code, where that can be read."""
    fits = None
    if launched.threads is not None:
        fits = occupancy(launched.arch, launched.threads, launched.registers, launched.shared_bytes)
    lines = sass_lines(cubin, entry)
    return replace(
        launched,
        occupancy=fits.share if fits else None,
        limiter=fits.limiter if fits else None,
        instructions=count_sass(lines or ()),
        digest=digest(lines or entry_body(ptx, entry).splitlines(), entry),
    )


def digest(lines: Sequence[str], entry: str) -> str:
    """Return a digest of code without names of kernels and numbers of registers, which vary."""
    code = "\n".join(line.replace(entry, "") for line in lines if ".loc" not in line)
    return sha256(_REGISTER.sub(r"\1", code).encode()).hexdigest()[:_DIGITS]


_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)")
_LANES = 32
_WORD = 4


@contextmanager
def launched() -> Iterator[list[Any]]:
    """The compiled kernels that are launched inside, each once, in the order of their first launch.

    Triton keeps compiled kernels by their arguments in each function, and tells nobody which one
    ran: so every launch is looked at. Nothing is timed inside.
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


def read_triton_kernel(
    kernel: Any, *, registers: int | None = None, spill_bytes: int | None = None
) -> KernelCode:
    """Read a compiled kernel. Registers and spills are given, or asked of one loaded."""
    metadata = kernel.metadata
    ptx = str(kernel.asm["ptx"])
    name = str(metadata.name)
    threads = _THREADS.search(ptx)
    launched = KernelCode(
        name=name,
        arch=f"sm_{metadata.target.arch}",
        threads=int(threads[1]) if threads else int(metadata.num_warps) * _LANES,
        stages=int(metadata.num_stages),
        registers=int(kernel.n_regs) if registers is None else registers,
        spill_bytes=int(kernel.n_spills) * _WORD if spill_bytes is None else spill_bytes,
        shared_bytes=int(metadata.shared),
    )
    return _code(launched, kernel.asm["cubin"], ptx, name)
