"""Which CUDA C++ kernels each variant has, read from a file's text: sources at its top, and calls
in the variants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec.json import decode

from gpulab.catalog.reader import UNITS, literal
from gpulab.catalog.source import UnreadableError, assigned, module_of
from gpulab.core.payloads import KernelCode, KernelText
from gpulab.scenario import Param

_SHIPPED = Path(__file__).parent.parent / "kernels.json"
_DIMENSIONS = 3


def kernels_of(
    source: str, variants: tuple[str, ...], params: Mapping[str, Param]
) -> dict[str, list[KernelText]]:
    """The kernels of each variant that has any, with these parameters; nothing of a file that
    cannot be read.

    A kernel is `NAME.kernel("...", threads=...)` in the variant's own function, where NAME =
    CudaSource("...") at the top of the file. What is no literal, parameter, number of the module,
    or arithmetic on them is not known here.
    """
    try:
        tree = module_of(source)
    except UnreadableError:
        return {}
    sources = {
        name: call for node in tree.body if (call := _source_of(node)) for name in _targets(node)
    }
    if not sources:
        return {}
    numbers = _numbers(tree)
    found: dict[str, list[KernelText]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in variants:
            values = _known_in(node, numbers, params)
            kernels = [_kernel(call, sources, values) for call in _calls(node, sources)]
            found[node.name] = list(
                dict.fromkeys(kernel for kernel in kernels if kernel is not None)
            )
    return {name: found[name] for name in variants if found.get(name)}


def shipped_kernels(source: str) -> dict[str, list[KernelCode]]:
    """Return what the compiler made of the kernels of a lesson that ships, by variant; nothing of
    any other text.

    Compiled for sm_90 with the lesson's own parameters, and kept with the package: where nothing
    can be compiled, the difference between variants can be read all the same.
    """
    try:
        kept = _SHIPPED.read_bytes()
    except OSError:
        return {}
    return decode(kept, type=dict[str, dict[str, list[KernelCode]]]).get(
        sha256(source.encode()).hexdigest(), {}
    )


def _source_of(node: ast.stmt) -> ast.Call | None:
    """The call of `NAME = CudaSource("...")`."""
    _, call = assigned(node)
    match call:
        case ast.Call(func=ast.Name(id="CudaSource"), args=[ast.Constant(value=str()), *_]):
            return call
    return None


def _targets(node: ast.stmt) -> list[str]:
    targets, _ = assigned(node)
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _numbers(tree: ast.Module) -> dict[str, Any]:
    """Numbers and texts that the module names."""
    values: dict[str, Any] = {**UNITS}
    for node in tree.body:
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            for name, part in _named_parts(target, node.value):
                with suppress(ValueError):
                    values[name] = literal(part, values)
    return values


def _named_parts(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each plain name that is assigned to, with the part of the value that it gets."""
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Tuple(elts=targets), ast.Tuple(elts=parts):
            for element, part in zip(targets, parts, strict=False):
                if isinstance(element, ast.Name):
                    yield element.id, part


def _known_in(
    function: ast.FunctionDef, numbers: Mapping[str, Any], params: Mapping[str, Param]
) -> dict[str, Any]:
    """Values of the names in a function: not of those that it assigns, which are known only when
    it runs.
    """
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    values = {**numbers, **_defaults(function), **params}
    return {name: value for name, value in values.items() if name not in assigned}


def _defaults(function: ast.FunctionDef) -> dict[str, Any]:
    """Values of the arguments that have one in the text."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    values = {}
    for argument, default in zip(
        reversed(arguments), reversed(function.args.defaults), strict=False
    ):
        with suppress(ValueError):
            values[argument.arg] = literal(default)
    return values


def _calls(function: ast.FunctionDef, sources: Mapping[str, ast.Call]) -> list[ast.Call]:
    calls = []
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="kernel")) as call:
                if name in sources:
                    calls.append(call)
    return sorted(calls, key=lambda call: (call.lineno, call.col_offset))


def _kernel(
    call: ast.Call, sources: Mapping[str, ast.Call], values: Mapping[str, Any]
) -> KernelText | None:
    """The kernel of a call; None where its name is not known from the text."""
    assert isinstance(call.func, ast.Attribute)
    assert isinstance(call.func.value, ast.Name)
    source = sources[call.func.value.id]
    code = source.args[0]
    assert isinstance(code, ast.Constant)
    assert isinstance(code.value, str)
    given = dict(zip(("name", "threads", "shared_bytes"), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    options = dict(zip(("code", "options"), source.args, strict=False))
    options |= {keyword.arg: keyword.value for keyword in source.keywords if keyword.arg}
    compiled_with, shared_bytes = (), 0
    try:
        name = literal(given["name"], values)
        if "options" in options:
            compiled_with = literal(options["options"])
        if "shared_bytes" in given:
            shared_bytes = literal(given["shared_bytes"], values)
    except (KeyError, ValueError):
        return None
    if not isinstance(name, str) or not isinstance(shared_bytes, int) or shared_bytes < 0:
        return None
    if not isinstance(compiled_with, tuple):
        return None
    threads = _threads(given["threads"], values) if "threads" in given else (256, 1, 1)
    return KernelText(
        name, code.value, code.lineno, tuple(map(str, compiled_with)), threads, shared_bytes
    )


def _threads(node: ast.expr, values: Mapping[str, Any]) -> tuple[int, int, int] | None:
    try:
        value = literal(node, values)
    except ValueError:
        return None
    given = value if isinstance(value, tuple) else (value,)
    if not 0 < len(given) <= _DIMENSIONS or not all(
        isinstance(size, int) and 0 < size <= 1024 for size in given
    ):
        return None
    x, y, z = (*given, 1, 1)[:_DIMENSIONS]
    return x, y, z
