"""NVRTC: CUDA C++ to PTX and machine code, for any architecture, with or without a GPU."""

from __future__ import annotations

import ast
import linecache
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import util
from pathlib import Path

import msgspec
from msgspec.structs import replace

from gpulab.core.files import write_whole
from gpulab.core.limits import MESSAGE_LENGTH
from gpulab.core.payloads import KernelText
from gpulab.core.text import cut
from gpulab.core.wire import UNREADABLE
from gpulab.features.kernels import nvrtc

_ERROR = re.compile(
    r"^(?P<file>.*)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<message>.*)$", re.MULTILINE
)
_ENTRY = re.compile(r"Compiling entry function '(?P<entry>\w+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_PARAMETER = re.compile(
    r"\.param (?:\.align \d+ )?\.(\w+) (?:\.ptr[^\w]*(?:\.\w+ )*(?:\d+ )?)?\w+(?:\[(\d+)\])?"
)
KERNELS_FOLDER = "GPULAB_KERNELS"
"""Environment variable: the folder in which a run's processes share what they compiled."""
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
    shared_bytes: int
    """Static shared memory of a block."""
    log: str


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
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    numbered = f'#line {text.line} "{quoted}"\n{text.code}'.encode(errors="replace")
    name = text.name.encode(errors="replace")
    folder = Path(os.path.realpath(file)).parent
    options = [_option(option, folder) for option in text.options]
    flags = [f"-arch={arch}", "-std=c++17", "--ptxas-options=-v", *options]
    flags += [f"-I{place}" for place in (*header_folders(), folder)]
    architectures()  # there is a compiler
    code = nvrtc.compile_source(numbered, name, [*map(os.fsencode, flags)])
    if code.status:
        raise _compile_error(code.log or code.status, text, file)
    resources = _resources(code.log, code.entry)
    if resources is None:
        message = f"with options {text.options} there is no machine code\n{code.log}"
        raise _compile_error(message, text, file)
    kinds = parameters(code.ptx, code.entry)
    return Compiled(text.name, arch, code.entry, code.ptx, code.cubin, kinds, *resources, code.log)


def _option(option: str, folder: Path) -> str:
    """The same, the relative path of an include as one of the scenario's folder."""
    if not option.startswith("-I"):
        return option
    return f"-I{folder / option.removeprefix('-I')}"


def architectures() -> tuple[str, ...]:
    """Those that this NVRTC compiles for. NoCompilerError."""
    try:
        numbers = nvrtc.architectures()
    except Exception as error:  # the binding raises errors of its own where there is no library
        message = "NVRTC, the compiler of CUDA C++, is not there: pip install 'gpulab[nvrtc]' "
        raise NoCompilerError(f"{message}({error})") from None
    return tuple(f"sm_{number}" for number in numbers)


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
        if (folder / "cuda_fp16.h").is_file():
            headers = str(folder)
            return (headers, f"{headers}/cccl") if (folder / "cccl").is_dir() else (headers,)
    return ()


def parameters(ptx: str, entry: str) -> tuple[str, ...]:
    """The types of an entry's parameters, such as u64, f32, or b8[16] of a struct."""
    header = re.search(rf"\.entry {re.escape(entry)}\((.*?)\)", ptx, re.DOTALL)
    parameters = _PARAMETER.findall(header[1]) if header else []
    return tuple(f"{kind}[{size}]" if size else kind for kind, size in parameters)


def _resources(log: str, entry: str) -> tuple[int, int, int] | None:
    """(registers, bytes spilled, bytes of static shared memory), from what the assembler
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
    stores, loads = map(int, spills.groups())
    return int(used[1]), stores + loads, int(shared[1]) if shared else 0


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
    error.add_note(cut(log.strip(), MESSAGE_LENGTH))
    return error


def literal_line(value: str, file: str, near: int = 1) -> int | None:
    """The line at which a literal begins in its file, of several the nearest."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == value
    ]
    return min(lines, key=lambda line: abs(line - near), default=None)
