"""Reads a scenario file as text. Nothing of it is executed, so listing is fast, and safe with a
stranger's file.

The `Scenario` that the file will construct when it runs is constructed here from the literals in
its text.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import cleandoc, getfullargspec
from math import isfinite
from typing import Any

from gpulab.catalog.source import UnreadableError, assigned, module_of, parsed
from gpulab.core.limits import (
    LARGEST_EXPONENT,
    LARGEST_INTEGER,
    MESSAGE_LENGTH,
    NAME_LENGTH,
    PARAMETERS,
    TEXT_LENGTH,
)
from gpulab.core.text import cut
from gpulab.scenario import GiB, KiB, MiB, Scenario, ScenarioError

UNITS: Mapping[str, Any] = {"KiB": KiB, "MiB": MiB, "GiB": GiB}
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def literal(node: ast.expr, names: Mapping[str, Any] = UNITS) -> Any:
    """The value of a literal, of arithmetic on numbers, of f-strings, and of known names: KiB, MiB
    and GiB. ValueError where it is none.
    """
    match node:
        case ast.Constant(value=None | bool() | int() | float() | str()):
            return _bounded(node.value)
        case ast.Tuple() | ast.List():
            return tuple(literal(item, names) for item in node.elts)
        case ast.Dict() if None not in node.keys:
            keys = [literal(key, names) for key in node.keys if key]
            if not all(isinstance(key, str) for key in keys):
                raise ValueError("a table with keys that are no texts")
            values = (literal(value, names) for value in node.values)
            return dict(zip(keys, values, strict=True))
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -_number(literal(node.operand, names))
        case ast.BinOp() if type(node.op) in _SUMS:
            return _sum(node.op, literal(node.left, names), literal(node.right, names))
        case ast.JoinedStr():
            return "".join(str(literal(part, names)) for part in node.values)
        case ast.FormattedValue(conversion=-1, format_spec=None):
            return literal(node.value, names)
    raise ValueError("not a literal")


def literal_of(text: str) -> Any:
    """The same of a text. ValueError."""
    try:
        tree = parsed(text.strip(), "eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("not a literal") from None
    return literal(tree.body)  # type: ignore[attr-defined]


def _sum(operation: ast.operator, left: Any, right: Any) -> Any:
    _number(left)
    if isinstance(operation, ast.Pow) and abs(_number(right)) > LARGEST_EXPONENT:
        raise ValueError(f"an exponent above {LARGEST_EXPONENT}")
    try:
        return _bounded(_SUMS[type(operation)](left, _number(right)))
    except ArithmeticError as error:
        raise ValueError(str(error)) from None


def _number(value: Any) -> Any:
    if not isinstance(value, (int, float)):
        raise ValueError("arithmetic on something that is not a number")
    return value


def _bounded(value: Any) -> Any:
    """The value itself, where it is one that a parameter may have."""
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError(f"a whole number beyond {LARGEST_INTEGER}")
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("not a finite number")
    return value


_KEYWORDS = {
    "Scenario": tuple(getfullargspec(Scenario.__init__).kwonlyargs),
    "variant": tuple(getfullargspec(Scenario.variant).kwonlyargs),
}
"""By what is called; as error messages list them."""


@dataclass(frozen=True)
class PlainFunction:
    """A function at the top level of a file: its docstring's first line, and the first PARAMETERS
    of the arguments that it requires.
    """

    summary: str
    required: tuple[str, ...]


@dataclass(frozen=True)
class ScenarioText:
    """The content of a file: its lesson and its scenario, None where it has none; and its
    functions.
    """

    lesson: str
    scenario: Scenario | None
    callables: dict[str, PlainFunction]
    """Public functions, and methods of the classes at the top level, as Class.method."""
    names: dict[str, int]
    """Names that the module binds to what may be called, by line: what FILE:function can name."""
    exercise: str | None = None
    """The name of the exercise that judges the file: EXERCISE = "NAME"."""

    @property
    def functions(self) -> dict[str, PlainFunction]:
        """The public functions, for lists."""
        return {name: each for name, each in self.callables.items() if "." not in name}


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_ATTRIBUTE = re.compile(r"\.[\s\\]*variant")
EMPTY = ScenarioText("", None, {}, {})


def read_text(text: str) -> ScenarioText:
    """Read the text of a file. UnreadableError where Python or the lab cannot
    read it.
    """
    tree = module_of(text)
    lesson = cleandoc(cut(ast.get_docstring(tree, clean=False) or "", MESSAGE_LENGTH))
    calls = [(node, call) for node in tree.body if (call := _call_of(node, "Scenario")) is not None]
    if len(calls) > 1:
        raise UnreadableError(
            calls[1][0].lineno, "a second Scenario", "keep one Scenario in a file"
        )
    scenario = _scenario(text, tree, *calls[0]) if calls else None
    exercise = next((name for node in tree.body if (name := _exercise_of(node)) is not None), None)
    return ScenarioText(lesson, scenario, _callables(tree), _callable_names(tree), exercise)


def _scenario(text: str, tree: ast.Module, node: ast.stmt, call: ast.Call) -> Scenario:
    name = _target(node)
    values = _keywords(call, "Scenario")
    if len(call.args) > 1:
        raise UnreadableError(
            call.lineno, "Scenario takes one positional value, the topic", "name the others"
        )
    topic = [_literal_of("topic", call.args[0])] if call.args else []
    scenario: Scenario = _construct(call, "Scenario", lambda: Scenario(*topic, **values))
    for function in tree.body:
        if isinstance(function, _Function):
            for decorator in function.decorator_list:
                if _is_variant(decorator, name):
                    _add_variant(scenario, function, decorator)
    _require_plain_decorators(text, tree, name, len(scenario.variants))
    if not scenario.variants:
        raise UnreadableError(
            call.lineno, "a Scenario without variants", f"decorate a function with @{name}.variant"
        )
    return scenario


def _require_plain_decorators(text: str, tree: ast.Module, name: str, count: int) -> None:
    """UnreadableError where a variant is registered otherwise than by the `count` decorators that
    were read.
    """
    # Most files have it nowhere else, and need not be walked. Python takes some other letters for
    # these, too.
    if text.isascii() and len(_ATTRIBUTE.findall(text)) == count:
        return
    functions = [node for node in tree.body if isinstance(node, _Function)]
    accepted = {
        _callee(decorator) for function in functions for decorator in function.decorator_list
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_variant(node, name) and node not in accepted:
            raise UnreadableError(
                node.lineno,
                "a variant registered in a loop, a condition or a call",
                f"decorate a function at the top level of the file with @{name}.variant",
            )


def _add_variant(scenario: Scenario, function: _Function, decorator: ast.expr) -> None:
    values: dict[str, Any] = {}
    if isinstance(decorator, ast.Call):
        if decorator.args:
            raise UnreadableError(
                decorator.lineno, "variant(...) takes keywords only", "name the value"
            )
        values = _keywords(decorator, "variant")

    def placeholder() -> None:
        return None

    placeholder.__name__, placeholder.__doc__ = function.name, _docstring(function)
    _construct(function, "variant", lambda: scenario.variant(**values)(placeholder))
    scenario.variants[function.name] = replace(scenario.variants[function.name], function=None)
    if not (function.args.posonlyargs or function.args.args):
        raise UnreadableError(
            function.lineno,
            f"{function.name}() takes no lab",
            f"write def {function.name}(lab, ...)",
        )
    for parameter in _required(function)[1:]:
        if parameter not in scenario.params:
            raise UnreadableError(
                function.lineno,
                f"{function.name}() requires {parameter!r}, which is not in params",
                f"add it: Scenario(params={{{parameter!r}: ...}})",
            )


def _construct(node: ast.stmt | ast.expr, callee: str, construct: Callable[[], Any]) -> Any:
    try:
        return construct()
    except ScenarioError as error:
        raise UnreadableError(node.lineno, str(error), "fix the value") from None
    except (TypeError, ValueError, AttributeError) as error:
        message = (
            str(error).replace("Scenario.__init__()", callee).replace("Scenario.variant()", callee)
        )
        keywords = ", ".join(_KEYWORDS[callee])
        raise UnreadableError(node.lineno, message, f"{callee} takes {keywords}") from None


def _keywords(call: ast.Call, callee: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for keyword in call.keywords:
        name, line = keyword.arg, keyword.value.lineno
        if name is None:
            raise UnreadableError(line, f"{callee}(**...) cannot be read", "write the keywords out")
        if name not in _KEYWORDS[callee] and not (callee == "Scenario" and name == "topic"):
            message = f"{callee}: unexpected keyword {name!r}"
            raise UnreadableError(line, message, _instead_of(name, _KEYWORDS[callee]))
        if name in values:
            raise UnreadableError(line, f"{name!r} is given twice", "keep one")
        values[name] = _literal_of(name, keyword.value)
    return values


_SIMILAR = 0.7


def _instead_of(name: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, allowed, 1, _SIMILAR)
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}it takes {', '.join(allowed)}"


def _literal_of(name: str, node: ast.expr) -> Any:
    try:
        return literal(node)
    except ValueError as error:
        raise UnreadableError(
            node.lineno,
            f"{name}= is {error}: it is read without running the file",
            "write a literal value",
        ) from None


def _exercise_of(node: ast.stmt) -> str | None:
    match node:
        case ast.Assign(targets=[ast.Name(id="EXERCISE")], value=ast.Constant(value=str(name))):
            return name
    return None


def _call_of(node: ast.stmt, name: str) -> ast.Call | None:
    _, value = assigned(node)
    match value:
        case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called == name:
            return value
    return None


def _target(node: ast.stmt) -> str:
    targets, _ = assigned(node)
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise UnreadableError(
            node.lineno, "the Scenario has no plain name", "write scenario = Scenario(...)"
        )
    return targets[0].id


def _callee(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _is_variant(node: ast.expr, name: str) -> bool:
    callee = _callee(node)
    return (
        isinstance(callee, ast.Attribute)
        and callee.attr == "variant"
        and isinstance(callee.value, ast.Name)
        and callee.value.id == name
    )


def _callables(tree: ast.Module) -> dict[str, PlainFunction]:
    functions = [
        node for node in tree.body if isinstance(node, _Function) and not node.name.startswith("_")
    ]
    found = {node.name: _plain(node) for node in functions if len(node.name) <= NAME_LENGTH}
    for name, node in _methods_of(tree):
        decorators = [each.id for each in node.decorator_list if isinstance(each, ast.Name)]
        found[name] = _plain(node, skipped=int("classmethod" in decorators))
    return found


def _methods_of(tree: ast.Module) -> Iterator[tuple[str, _Function]]:
    for cls in tree.body:
        if not isinstance(cls, ast.ClassDef):
            continue
        for node in cls.body:
            name = f"{cls.name}.{node.name}" if isinstance(node, _Function) else ""
            if isinstance(node, _Function) and len(name) <= NAME_LENGTH:
                yield name, node


def _plain(function: _Function, skipped: int = 0) -> PlainFunction:
    """`skipped`: first arguments that nobody has to give."""
    required = _required(function)[skipped : skipped + PARAMETERS]
    summary = _docstring(function).partition("\n")[0][:TEXT_LENGTH]
    return PlainFunction(summary, tuple(cut(name, NAME_LENGTH) for name in required))


def _docstring(function: _Function) -> str:
    return (ast.get_docstring(function, clean=False) or "").strip()


def _required(function: _Function) -> list[str]:
    """The names of the arguments without a default value."""
    arguments = function.args
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    required = positional[: len(positional) - len(arguments.defaults)]
    keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return required + [argument.arg for argument, default in keyword_only if default is None]


def _callable_names(tree: ast.Module) -> dict[str, int]:
    names: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, _Function | ast.ClassDef):
            names[node.name] = node.lineno
        elif isinstance(node, ast.Assign):
            names.update(
                {target.id: node.lineno for target in node.targets if isinstance(target, ast.Name)}
            )
    names.update({name: node.lineno for name, node in _methods_of(tree)})
    return {name: line for name, line in names.items() if len(name) <= NAME_LENGTH}
