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
    name = re.escape(text.name.partition("<")[0].strip())
    code = text.code
    found = re.search(rf"^[^\n]*__global__[^;{{}}]*?\b{name}\s*\(", code, re.MULTILINE)
    start = found.start() if found else 0
    end = _closing_brace(code, found.end()) if found else len(code)
    before = code[:start].splitlines()
    while found and before and before[-1].lstrip().startswith("template"):
        start -= len(before.pop()) + 1
    first = text.line + code.count("\n", 0, start)
    lines = code[start:end].split("\n")
    blank = next((place for place, line in enumerate(lines) if line.strip()), 0)
    return Definition(first + blank, lines[blank:])


def _closing_brace(code: str, start: int) -> int:
    """The place after the brace that closes the first one from `start` on."""
    depth = 0
    for place in range(code.find("{", start), len(code)):
        depth += {"{": 1, "}": -1}.get(code[place], 0)
        if depth == 0:
            return place + 1
    return len(code)
