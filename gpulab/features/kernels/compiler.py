"""NVRTC: CUDA C++ to PTX and machine code, for any architecture, with or without a GPU."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import util
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from gpulab.core.files import write_whole
from gpulab.core.payloads import KernelText
from gpulab.core.wire import UNREADABLE

_ERROR = re.compile(
    r"^(?P<file>.*)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<message>.*)$", re.MULTILINE
)
_ENTRY = re.compile(r"Compiling entry function '(?P<entry>\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_PARAMETER = re.compile(
    r"\.param (?:\.align \d+ )?\.(\w+) (?:\.ptr[^\w]*(?:\.\w+ )*(?:\d+ )?)?\w+(?:\[(\d+)\])?"
)
_NO_CACHE = "-no-cache"
"""NVRTC's cache of machine code says nothing of registers."""
KERNELS_FOLDER = "GPULAB_KERNELS"
"""Environment variable: the folder in which a run's processes share what they compiled."""
_HEADER = "cuda_fp16.h"
_CACHED = 256


class CompileError(SyntaxError):
    """CUDA C++ that does not compile: the compiler's first error, with its line in the scenario's
    file.

    Its notes are all that the compiler said.
    """


class NoCompilerError(ImportError):
    """NVRTC is not installed; the message says how to install it."""


@dataclass(frozen=True)
class Compiled:
    """One kernel for one architecture. `entry`: its name in machine code."""

    name: str
    arch: str
    entry: str
    ptx: str
    cubin: bytes
    parameters: tuple[str, ...]
    registers: int
    spill_bytes: int
    """Bytes that a thread stores to and loads from local memory for want of registers."""
    stack_bytes: int
    shared_bytes: int
    """Static shared memory of a block."""
    log: str


def available() -> bool:
    """Whether NVRTC can be imported; whether its library is there shows when it is used."""
    return util.find_spec("cuda") is not None and util.find_spec("cuda.bindings") is not None


def compile_kernel(text: KernelText, arch: str, file: str = "kernel.cu") -> Compiled:
    """One kernel for an architecture such as `sm_90`. CompileError, NoCompilerError."""
    return _compile(replace(text, threads=None, shared_bytes=0), arch, file)


@lru_cache(_CACHED)
def _compile(text: KernelText, arch: str, file: str) -> Compiled:
    """From the run's folder, where another process compiled it; else by the compiler."""
    folder = os.environ.get(KERNELS_FOLDER)
    if folder is None:
        return _compiled(text, arch, file)
    digest = sha256(repr((text, arch, file)).encode(errors="replace")).hexdigest()
    path = Path(folder) / digest
    with suppress(OSError, *UNREADABLE):
        return msgspec.msgpack.decode(path.read_bytes(), type=Compiled)
    compiled = _compiled(text, arch, file)
    with suppress(OSError):  # then each process compiles for itself
        path.parent.mkdir(exist_ok=True)
        write_whole(path, msgspec.msgpack.encode(compiled))
    return compiled


def _compiled(text: KernelText, arch: str, file: str) -> Compiled:
    nvrtc = _nvrtc()
    name = text.name.encode(errors="replace")
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    numbered = f'#line {text.line} "{quoted}"\n{text.code}'.encode(errors="replace")
    program = _result(nvrtc.nvrtcCreateProgram(numbered, b"kernel.cu", 0, [], []))
    try:
        _result(nvrtc.nvrtcAddNameExpression(program, name))
        headers = [f"-I{folder}" for folder in header_folders()]
        flags = [f"-arch={arch}", "-std=c++17", "--ptxas-options=-v", *headers, *text.options]
        status = _run_compiler(nvrtc, program, [*flags, _NO_CACHE])
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:  # of an NVRTC that has no cache
            status = _run_compiler(nvrtc, program, flags)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(
            errors="replace"
        )
        if int(status) != 0:
            raise _compile_error(log or str(status), text, file)
        entry = _result(nvrtc.nvrtcGetLoweredName(program, name)).decode()
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).decode(errors="replace")
        cubin = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program, whole=True)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
    resources = _resources(log, entry)
    if resources is None:
        message = f"with options {text.options} there is no machine code\n{log}"
        raise _compile_error(message, text, file)
    return Compiled(text.name, arch, entry, ptx, cubin, parameters(ptx, entry), *resources, log)


def _run_compiler(nvrtc: Any, program: Any, flags: list[str]) -> Any:
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [flag.encode() for flag in flags])
    return status


def architectures() -> tuple[str, ...]:
    """Those that this NVRTC compiles for. NoCompilerError."""
    return tuple(f"sm_{number}" for number in _result(_nvrtc().nvrtcGetSupportedArchs()))


@lru_cache(1)
def header_folders() -> tuple[str, ...]:
    """Folders of CUDA's headers, such as cuda_fp16.h: a toolkit's, or a wheel's."""
    spec = util.find_spec("nvidia")
    wheels = [Path(place) for place in (spec.submodule_search_locations if spec else None) or ()]
    folders = []
    for place in wheels:
        folders += [folder / "include" for folder in place.glob("cu[0-9]*")]
        folders.append(place / "cuda_runtime" / "include")
    folders.append(Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "include")
    for folder in folders:
        if (folder / _HEADER).is_file():
            own = str(folder)
            return (own, f"{own}/cccl") if (folder / "cccl").is_dir() else (own,)
    return ()


def parameters(ptx: str, entry: str) -> tuple[str, ...]:
    """The types of an entry's parameters, such as u64, f32, or b8[16] of a struct."""
    header = re.search(rf"\.entry {re.escape(entry)}\((.*?)\)", ptx, re.DOTALL)
    found = _PARAMETER.findall(header[1]) if header else []
    return tuple(f"{kind}[{size}]" if size else kind for kind, size in found)


def _resources(log: str, entry: str) -> tuple[int, int, int, int] | None:
    """(registers, bytes spilled, of the stack, of static shared memory), from what the assembler
    says; None if nothing.

    It does not run where options ask for other code.
    """
    pieces = _ENTRY.split(log)
    said = dict(zip(pieces[1::2], pieces[2::2], strict=True)).get(entry, "")
    used = _USED.search(said)
    spills = _SPILLS.search(said)
    shared = _SHARED.search(said)
    if used is None or spills is None:
        return None
    stack, stores, loads = map(int, spills.groups())
    return int(used[1]), stores + loads, stack, int(shared[1]) if shared else 0


def _compile_error(log: str, text: KernelText, file: str) -> CompileError:
    first = _ERROR.search(log)
    # the name of a kernel that the source does not have, for example
    if first is None or first["file"] != file:
        message = first["message"] if first else log.strip().partition("\n")[0]
        error = CompileError(f"{message} (in {text.name})", (file, text.line, None, None))
    else:
        number = int(first["line"])
        place = number - text.line
        lines = text.code.split("\n")
        line = lines[place] if 0 <= place < len(lines) else None
        error = CompileError(first["message"], (file, number, None, line))
    error.add_note(log.strip())
    return error


def _nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc

        _result(nvrtc.nvrtcVersion())
    except Exception as error:  # the binding raises errors of its own where there is no library
        message = (
            f"NVRTC, the compiler of CUDA C++, is not there: pip install 'gpulab[nvrtc]' ({error})"
        )
        raise NoCompilerError(message) from None
    return nvrtc


def _result(returned: tuple[Any, ...]) -> Any:
    """What a call of the library returned beside its status."""
    status, *values = returned
    if int(status) != 0:
        raise RuntimeError(f"NVRTC: {status}")
    return values[0] if len(values) == 1 else values


def _text(size_of: Any, get: Any, program: Any, *, whole: bool = False) -> bytes:
    data: bytes = b"\0" * _result(size_of(program))
    _result(get(program, data))
    return data if whole else data.rstrip(b"\0")
