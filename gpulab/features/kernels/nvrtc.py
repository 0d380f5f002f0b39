"""`python -m gpulab.features.kernels.nvrtc PARENT SECONDS BYTES`: NVRTC in a process of its own,
with limits. Source comes in on stdin, code goes out on stdout.

It dies with its parent, and ends by itself when nothing is asked for a while. Its current folder,
in which the compiler looks for headers too, is empty, and nothing can be made in it.
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

_PR_SET_PDEATHSIG = 1
_IDLE_S = 10.0
_NO_CACHE = b"-no-cache"
"""NVRTC's cache of machine code says nothing of registers."""


class Hello(msgspec.Struct):
    """`problem`: why there is no compiler."""

    architectures: list[int] = []
    problem: str = ""


class Source(msgspec.Struct):
    """`name`: of the kernel, as the source names it."""

    text: bytes
    name: bytes
    flags: list[bytes]


class Code(msgspec.Struct):
    """`status`: what went wrong; without a log it is all that is known."""

    log: str
    status: str = ""
    entry: str = ""
    ptx: str = ""
    cubin: bytes = b""


def framed(message: msgspec.Struct) -> bytes:
    """As it stands on a pipe: its length in 4 bytes, and itself."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(4, "big") + data


def main() -> None:
    parent, seconds, memory_bytes = map(int, sys.argv[1:])
    if ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL) or os.getppid() != parent:
        return
    output = os.dup(1)
    os.dup2(2, 1)  # whatever the library prints is no answer
    _limit(resource.RLIMIT_AS, memory_bytes)
    hello, nvrtc = _open()
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _write(output, framed(hello))
    while select.select([0], [], [], _IDLE_S)[0]:
        length = _read(4)
        if not length:
            return
        source = msgspec.msgpack.decode(_read(int.from_bytes(length, "big")), type=Source)
        _limit(resource.RLIMIT_CPU, int(time.process_time()) + seconds + 1)
        _write(output, framed(_compile(nvrtc, source)))


def _limit(what: int, soft: int) -> None:
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (soft if hard < 0 else min(soft, hard), hard))


def _open() -> tuple[Hello, Any]:
    try:
        from cuda.bindings import nvrtc

        return Hello(list(_result(nvrtc.nvrtcGetSupportedArchs()))), nvrtc
    except Exception as error:  # the binding raises errors of its own where there is no library
        return Hello(problem=str(error) or type(error).__name__), None


def _compile(nvrtc: Any, source: Source) -> Code:
    program = None
    try:
        program = _result(nvrtc.nvrtcCreateProgram(source.text, b"kernel.cu", 0, [], []))
        _result(nvrtc.nvrtcAddNameExpression(program, source.name))
        status = _run_compiler(nvrtc, program, [*source.flags, _NO_CACHE])
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:  # of an NVRTC that has no cache
            status = _run_compiler(nvrtc, program, source.flags)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        code = Code(log.rstrip(b"\0").decode(errors="replace"))
        if int(status) != 0:
            code.status = str(status)
            return code
        code.entry = _result(nvrtc.nvrtcGetLoweredName(program, source.name)).decode()
        ptx = _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
        code.ptx = ptx.rstrip(b"\0").decode(errors="replace")
        code.cubin = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        return code
    except Exception as error:
        return Code("", f"{type(error).__name__}: {error}")
    finally:
        if program is not None:
            nvrtc.nvrtcDestroyProgram(program)


def _run_compiler(nvrtc: Any, program: Any, flags: list[bytes]) -> Any:
    (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
    return status


def _result(returned: tuple[Any, ...]) -> Any:
    """What a call of the library returned beside its status."""
    status, *values = returned
    if int(status) != 0:
        raise RuntimeError(f"NVRTC: {status}")
    return values[0] if len(values) == 1 else values


def _text(size_of: Any, get: Any, program: Any) -> bytes:
    data: bytes = b"\0" * _result(size_of(program))
    _result(get(program, data))
    return data


def _read(count: int) -> bytes:
    """From stdin; less at its end."""
    data = b""
    while len(data) < count and (more := os.read(0, count - len(data))):
        data += more
    return data


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


if __name__ == "__main__":
    main()
