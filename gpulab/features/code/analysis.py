"""The functions of a scenario's file and where each kernel is defined in its source, read from its
text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import dedent
from typing import NamedTuple

from gpulab.catalog.source import assigned
from gpulab.core.payloads import KernelText


class Definition(NamedTuple):
    """A function's first line in its file, and its lines."""

    first: int
    lines: list[str]


def definition_of(text: KernelText) -> Definition:
    """The definition of a kernel, its template line included; the whole source where none is
    found.
    """
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
    """The beginning of the line of `__global__ ... name(`, and the brace that opens the body; not
    of a declaration.
    """
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


@dataclass(frozen=True)
class SourceFunction:
    """A function or class: its first line, decorators included, and its lines, indented as at the
    top of a file.
    """

    name: str
    first: int
    lines: Sequence[str]
    docstring: Collection[int] = ()
    """Places of its lines."""

    @property
    def of_any_name(self) -> SourceFunction:
        """Return it without its name and docstring, which no two variants have in common."""
        own = re.compile(rf"\b(def|class) {re.escape(self.name)}\b")
        lines = [
            "" if place in self.docstring else own.sub(r"\1", line)
            for place, line in enumerate(self.lines)
        ]
        return replace(self, lines=lines)


@dataclass(frozen=True)
class VariantCode:
    """A variant's function, and in the order of the file the helpers that it calls and not every
    variant does.
    """

    function: SourceFunction
    helpers: Sequence[SourceFunction]


@dataclass
class _Module:
    """The names that the top level of a file defines, also in an `if` or `try`; and which of them
    each name uses.
    """

    functions: dict[str, list[SourceFunction]] = field(default_factory=dict)
    variants: set[str] = field(default_factory=set)
    uses: dict[str, set[str]] = field(default_factory=dict)


def variant_code(source: str, variants: Sequence[str]) -> dict[str, VariantCode]:
    """Return the code of the variants with a function of that name, in their order. Empty for a
    file that cannot be read.
    """
    try:
        module = _module_of(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    every = module.variants | (module.functions.keys() & set(variants))
    reached = {name: _reached(name, module.uses) for name in every}
    shared = set.intersection(*reached.values()) if reached else set()
    return {
        name: VariantCode(
            module.functions[name][0], _helpers(module, reached[name] - shared - every)
        )
        for name in variants
        if name in module.functions
    }


def _helpers(module: _Module, names: Collection[str]) -> list[SourceFunction]:
    return sorted(
        (each for name in names for each in module.functions.get(name, ())),
        key=lambda each: each.first,
    )


def _module_of(source: str) -> _Module:
    module, lines = _Module(), source.splitlines()
    for node in _statements(ast.parse(source).body):
        names = _names(node)
        for name in names:
            used = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            module.uses.setdefault(name, set()).update(used - {name})
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            text = dedent("\n".join(lines[first - 1 : node.end_lineno])).split("\n")
            module.functions.setdefault(node.name, []).append(
                SourceFunction(node.name, first, text, _docstring(node, first))
            )
            if any(_is_variant(decorator) for decorator in node.decorator_list):
                module.variants.add(node.name)
    return module


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, first: int) -> range:
    """Places of its lines, from `first` on."""
    if ast.get_docstring(node, clean=False) is None:
        return range(0)
    stated = node.body[0]
    return range(stated.lineno - first, (stated.end_lineno or stated.lineno) - first + 1)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Those of a module, and of `if`, `try` and `with` at its top."""
    waiting = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            handlers = node.handlers if isinstance(node, ast.Try) else []
            parts = [
                node.body,
                getattr(node, "orelse", []),
                getattr(node, "finalbody", []),
                *(h.body for h in handlers),
            ]
            waiting += reversed([inner for part in parts for inner in part])
        else:
            yield node


def _names(node: ast.stmt) -> list[str]:
    """Return what a statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets, _ = assigned(node)
    return [
        part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)
    ]


def _is_variant(decorator: ast.expr) -> bool:
    """`scenario.variant`, called or not."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Attribute) and named.attr == "variant"


def _reached(name: str, uses: Mapping[str, set[str]]) -> set[str]:
    reached, waiting = {name}, [name]
    while waiting:
        new = uses.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached
