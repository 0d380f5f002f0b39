"""Where a kernel is defined in its source: the lines of the function, without what it shares with others."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpulab.protocol.kernels import KernelText


class Definition(NamedTuple):
    """A function's first line in its file, and its lines."""

    first: int
    lines: list[str]


def definition_of(text: KernelText) -> Definition:
    """The definition of a kernel, its template line included; the whole source where none is found."""
    code = text.code
    found = _header(code, text.name.partition("<")[0].strip())
    start, end = (found[0], _closing_brace(code, found[1])) if found else (0, len(code))
    before = code[:start].splitlines()
    while found and before and before[-1].lstrip().startswith("template"):
        start -= len(before.pop()) + 1
    first = text.line + code.count("\n", 0, start)
    lines = code[start:end].split("\n")
    blank = next((place for place, line in enumerate(lines) if line.strip()), 0)
    return Definition(first + blank, lines[blank:])


def _header(code: str, name: str) -> tuple[int, int] | None:
    """The beginning of the line of `__global__ ... name(`, and the brace that opens the body; not of a declaration."""
    begin: int | None = None
    named = False
    for found in re.finditer(rf"[;{{}}]|\b__global__\b|\b{re.escape(name)}\s*\(", code):
        if found[0] == "{" and begin is not None and named:
            return code.rfind("\n", 0, begin) + 1, found.start()
        if found[0] in ("{", "}", ";"):
            begin, named = None, False
        elif found[0] == "__global__":
            begin = found.start() if begin is None else begin
        else:
            named = begin is not None
    return None


def _closing_brace(code: str, start: int) -> int:
    """The place after the brace that closes the one at `start`."""
    depth = 0
    for place in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[place], 0)
        if depth == 0:
            return place + 1
    return len(code)
