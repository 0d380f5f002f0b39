"""NVRTC, in this process: a source goes in, machine code comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Code:
    """`status`: what went wrong; without a log it is all that is known."""

    log: str
    status: str = ""
    entry: str = ""
    ptx: str = ""
    cubin: bytes = b""


def architectures() -> list[int]:
    """Those that it compiles for. The binding raises errors of its own where there is no
    library.
    """
    from cuda.bindings import nvrtc

    return list(_result(nvrtc.nvrtcGetSupportedArchs()))


def compile_source(text: bytes, name: bytes, flags: list[bytes]) -> Code:
    """`name`: of the kernel, as the source names it."""
    from cuda.bindings import nvrtc

    program = None
    try:
        program = _result(nvrtc.nvrtcCreateProgram(text, b"kernel.cu", 0, [], []))
        _result(nvrtc.nvrtcAddNameExpression(program, name))
        # NVRTC's cache of machine code says nothing of registers.
        status = _run_compiler(nvrtc, program, [*flags, b"-no-cache"])
        if status == nvrtc.nvrtcResult.NVRTC_ERROR_INVALID_OPTION:  # of an NVRTC that has no cache
            status = _run_compiler(nvrtc, program, flags)
        log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
        code = Code(log.rstrip(b"\0").decode(errors="replace"))
        if int(status) != 0:
            code.status = str(status)
            return code
        code.entry = _result(nvrtc.nvrtcGetLoweredName(program, name)).decode()
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
    """Return what a call of the library returned beside its status."""
    status, *values = returned
    if int(status) != 0:
        raise RuntimeError(f"NVRTC: {status}")
    return values[0] if len(values) == 1 else values


def _text(size_of: Any, get: Any, program: Any) -> bytes:
    data: bytes = b"\0" * _result(size_of(program))
    _result(get(program, data))
    return data
