"""Reads a scenario file as text. Nothing of it is executed, so listing is fast, and safe with a stranger's file.

The same `Scenario` that the file will make when it runs is made here from the literals in its text.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpulab.model import scenario as vocabulary
from gpulab.model.scenario import Scenario, ScenarioError

_UNITS = {name: getattr(vocabulary, name) for name in ("KiB", "MiB", "GiB")}
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}
_LARGEST_EXPONENT = 64
_SCENARIO_KEYWORDS = (  # as the error message lists them
    "needs, params, cpu, smoke, sweep, roof, per, clock, cache, ladder, alone, grows, env, claim, same"
)
_VARIANT_KEYWORDS = "needs, against, claim, unchecked"


class UnreadableError(Exception):
    """What is wrong with a file's text, where, and how to mend it."""

    def __init__(self, line: int, message: str, mend: str) -> None:
        super().__init__(f"line {line}: {message}; {mend}")
        self.line, self.message, self.mend = line, message, mend


@dataclass(frozen=True)
class Source:
    """What a file's text says: its lesson and its scenario, None where it has none; and its functions."""

    lesson: str
    scenario: Scenario | None
    functions: dict[str, int]
    """Names that the module binds, by line: what FILE:function can name."""


EMPTY = Source("", None, {})


def read_source(text: str) -> Source:
    """Read the text of a file. UnreadableError where Python, or the lab, cannot take it as it stands."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise UnreadableError(error.lineno or 1, f"syntax error: {error.msg}", "mend the syntax") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(1, f"not readable as Python: {error}", "is this a Python file?") from None
    lesson = ast.get_docstring(tree) or ""
    made = [(node, call) for node in tree.body if (call := _call_of(node, "Scenario")) is not None]
    if len(made) > 1:
        raise UnreadableError(made[1][0].lineno, "a second Scenario", "keep one Scenario in a file")
    scenario = _scenario(tree, *made[0]) if made else None
    return Source(lesson, scenario, _bound(tree))


def literal(node: ast.expr) -> Any:
    """The value of a literal, of arithmetic on numbers, and of KiB, MiB, GiB. ValueError where it is none."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Tuple() | ast.List():
            return tuple(literal(item) for item in node.elts)
        case ast.Dict() if None not in node.keys:
            return {literal(key): literal(value) for key, value in zip(node.keys, node.values, strict=True) if key}
        case ast.Name() if node.id in _UNITS:
            return _UNITS[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -literal(node.operand)
        case ast.BinOp() if type(node.op) in _SUMS:
            return _sum(node)
    raise ValueError("not a literal")


def _sum(node: ast.BinOp) -> Any:
    left, right = literal(node.left), literal(node.right)
    if not all(isinstance(side, (int, float)) for side in (left, right)):
        raise ValueError("arithmetic on something that is no number")
    if isinstance(node.op, ast.Pow) and abs(right) > _LARGEST_EXPONENT:
        raise ValueError("an exponent above 64")
    try:
        return _SUMS[type(node.op)](left, right)
    except ArithmeticError as error:
        raise ValueError(str(error)) from None


def _scenario(tree: ast.Module, node: ast.stmt, call: ast.Call) -> Scenario:
    name = _target(node)
    values = _keywords(call, "Scenario", _SCENARIO_KEYWORDS)
    if len(call.args) > 1:
        raise UnreadableError(call.lineno, "Scenario takes one value without a name, the topic", "name the others")
    topic = [_literal_of("topic", call.args[0])] if call.args else []
    scenario: Scenario = _made(call, "Scenario", _SCENARIO_KEYWORDS, lambda: Scenario(*topic, **values))
    accepted: set[ast.expr] = set()
    for function in tree.body:
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for decorator in function.decorator_list:
                if _is_variant(decorator, name):
                    accepted.add(_callee(decorator))
                    _add_variant(scenario, function, decorator)
    for found in ast.walk(tree):
        if isinstance(found, ast.expr) and _is_variant(found, name) and _callee(found) not in accepted:
            raise UnreadableError(
                found.lineno,
                "a variant made in a loop, a condition or a call",
                f"decorate a function at the top level of the file with @{name}.variant",
            )
    if not scenario.variants:
        raise UnreadableError(call.lineno, "a Scenario without variants", f"decorate a function with @{name}.variant")
    return scenario


def _add_variant(scenario: Scenario, function: ast.FunctionDef | ast.AsyncFunctionDef, decorator: ast.expr) -> None:
    values: dict[str, Any] = {}
    if isinstance(decorator, ast.Call):
        if decorator.args:
            raise UnreadableError(decorator.lineno, "variant(...) takes named values only", "name the value")
        values = _keywords(decorator, "variant", _VARIANT_KEYWORDS)

    def placeholder() -> None:
        return None

    placeholder.__name__, placeholder.__doc__ = function.name, ast.get_docstring(function)
    _made(function, "variant", _VARIANT_KEYWORDS, lambda: scenario.variant(**values)(placeholder))
    arguments = function.args
    names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
    if not names:
        raise UnreadableError(
            function.lineno, f"{function.name}() takes no lab", f"write def {function.name}(lab, ...)"
        )
    optional = len(arguments.defaults)
    required = [*names[1 : len(arguments.posonlyargs) + len(arguments.args) - optional]]
    for parameter in required:
        if parameter not in scenario.params:
            raise UnreadableError(
                function.lineno,
                f"{function.name}() wants {parameter!r}, which is not in params",
                f"add it: Scenario(params={{{parameter!r}: ...}})",
            )


def _made(node: ast.stmt | ast.expr, what: str, keywords: str, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except ScenarioError as error:
        raise UnreadableError(node.lineno, str(error), "mend the value") from None
    except (TypeError, ValueError, AttributeError) as error:
        message = str(error).replace("Scenario.__init__()", what).replace("Scenario.variant()", what)
        raise UnreadableError(node.lineno, message, f"{what} takes {keywords}") from None


def _keywords(call: ast.Call, what: str, allowed: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise UnreadableError(keyword.value.lineno, f"{what}(**...) cannot be read", "write the keywords out")
        if keyword.arg not in allowed.split(", ") and not (what == "Scenario" and keyword.arg == "topic"):
            raise UnreadableError(keyword.value.lineno, f"{what} knows no {keyword.arg!r}", f"it takes {allowed}")
        if keyword.arg in found:
            raise UnreadableError(keyword.value.lineno, f"{keyword.arg!r} is given twice", "keep one")
        found[keyword.arg] = _literal_of(keyword.arg, keyword.value)
    return found


def _literal_of(name: str, node: ast.expr) -> Any:
    try:
        return literal(node)
    except ValueError as error:
        raise UnreadableError(
            node.lineno, f"{name}= is {error}: it is read without running the file", "write a literal value"
        ) from None


def _call_of(node: ast.stmt, name: str) -> ast.Call | None:
    value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(value, ast.Call):
        callee = value.func
        if (callee.id if isinstance(callee, ast.Name) else getattr(callee, "attr", None)) == name:
            return value
    return None


def _target(node: ast.stmt) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if len(targets) != 1 or not isinstance(targets[0], ast.Name):
        raise UnreadableError(node.lineno, "the Scenario has no plain name", "write scenario = Scenario(...)")
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


def _bound(tree: ast.Module) -> dict[str, int]:
    """Names a module binds at its top level to what may be called, with their lines."""
    found: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = node.lineno
        elif isinstance(node, ast.Assign):
            found.update({target.id: node.lineno for target in node.targets if isinstance(target, ast.Name)})
    return found
