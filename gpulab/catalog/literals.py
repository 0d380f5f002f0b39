"""Values of literals, found without running anything: each is bounded where it is made, and so is the work for it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from math import isfinite
from typing import Any

from gpulab.catalog.source import parsed
from gpulab.limits import LARGEST_EXPONENT, LARGEST_INTEGER, LITERAL_DEPTH, TEXT_LENGTH
from gpulab.scenario import GiB, KiB, MiB

_UNITS = {"KiB": KiB, "MiB": MiB, "GiB": GiB}
_SUMS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def literal(node: ast.expr, depth: int = LITERAL_DEPTH) -> Any:
    """The value of a literal, of arithmetic on numbers, and of KiB, MiB, GiB. ValueError where it is none."""
    if depth == 0:
        raise ValueError(f"nested more than {LITERAL_DEPTH} deep")
    match node:
        case ast.Constant():
            return _bounded(node.value)
        case ast.Tuple() | ast.List():
            return tuple(literal(item, depth - 1) for item in node.elts)
        case ast.Dict() if None not in node.keys:
            names = [literal(key, depth - 1) for key in node.keys if key]
            if not all(isinstance(name, str) for name in names):
                raise ValueError("a table with keys that are no texts")
            return dict(zip(names, (literal(value, depth - 1) for value in node.values), strict=True))
        case ast.Name() if node.id in _UNITS:
            return _UNITS[node.id]
        case ast.UnaryOp(op=ast.USub()):
            return -_number(literal(node.operand, depth - 1))
        case ast.BinOp() if type(node.op) in _SUMS:
            return _sum(node.op, literal(node.left, depth - 1), literal(node.right, depth - 1))
    raise ValueError("not a literal")


def literal_of(text: str) -> Any:
    """The same of a text. ValueError."""
    if len(text) > TEXT_LENGTH:
        raise ValueError(f"a text of more than {TEXT_LENGTH} characters")
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
    """The value itself, where it is one that a parameter or a keyword may have."""
    match value:
        case None | bool():
            return value
        case int() if abs(value) > LARGEST_INTEGER:
            raise ValueError(f"a whole number beyond {LARGEST_INTEGER}")
        case float() if not isfinite(value):
            raise ValueError("not a finite number")
        case str() if len(value) > TEXT_LENGTH:
            raise ValueError(f"a text of more than {TEXT_LENGTH} characters")
        case str() if any("\ud800" <= mark <= "\udfff" for mark in value):
            raise ValueError("a text with a surrogate, which is no character")
        case int() | float() | str():
            return value
    raise ValueError("not a literal")
