"""nvdisasm: machine code to SASS, by the one that is there: of a wheel, of Triton, or of a CUDA toolkit."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from importlib import metadata, util
from pathlib import Path

import msgspec

_PACKAGES = ("nvidia-cuda-nvdisasm", "nvidia-cuda-nvdisasm-cu12")
_TIMEOUT_S = 30.0
_CACHED = 256


class _Line(msgspec.Struct):
    opcode: str
    operands: str = ""
    predicate: str = ""


class _Function(msgspec.Struct, rename={"name": "function-name", "lines": "sass-instructions"}):
    name: str = ""
    lines: list[_Line] = []


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
        Path(place) / "backends" / "nvidia" / "bin" for place in (spec and spec.submodule_search_locations) or ()
    ]
    toolkit = [Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "bin"]
    found = (shutil.which("nvdisasm", path=str(folder)) for folder in (*bundled, *toolkit))
    return next((path for path in found if path), None) or shutil.which("nvdisasm")


@lru_cache(_CACHED)
def sass_lines(cubin: bytes, entry: str) -> tuple[str, ...] | None:
    """The instructions of one kernel, such as `@P0 LDG.E.128 R4, desc[UR4][R2.64]`; None where nobody can read them."""
    program = disassembler()
    if program is None:
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as binary:
        Path(binary.name).write_bytes(cubin)
        command = [program, "-json", binary.name]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):  # it is listed, and not there or not for this machine
            return None
    if done.returncode != 0:
        return None
    try:
        _, functions = msgspec.json.decode(done.stdout, type=tuple[object, list[_Function]])
    except msgspec.MsgspecError:
        return None
    lines = next((function.lines for function in functions if function.name == entry), None)
    return None if lines is None else _without_padding(lines)


def _without_padding(lines: list[_Line]) -> tuple[str, ...]:
    """Without what fills the last cache line: a branch to itself, and nothing."""
    while lines and lines[-1].opcode == "NOP":
        lines = lines[:-1]
    if len(lines) > 1 and lines[-1].opcode == "BRA":
        lines = lines[:-1]
    return tuple(" ".join(filter(None, (line.predicate, line.opcode, line.operands))) for line in lines)
