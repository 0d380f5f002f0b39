"""What a step of a side returned as plain data, which another process can hold against its own."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from math import inf
from typing import Any

from gpulab.engine.rounding import OF_ELEMENT, PRECISION, TOLERANCE, Difference
from gpulab.engine.step_clock import value_later

_LONG = 40
"""Characters of a value that are shown."""
_CONTAINERS = ("list", "set", "dict")
_WITH_TEXT = ("datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid")
"""Modules whose values are equal where their texts are."""


class SideError(Exception):
    """Why a side cannot be measured, as one sentence."""


Leaf = tuple[str, Any]
"""A kind, and the value: a number, text, or (dtype, shape, bytes) of an array."""


def leaves_of(output: object) -> list[Leaf]:
    """Return what a step returned, as plain data. SideError of a kind that nobody compares."""
    leaves = []
    size = 0
    for leaf in _leaves(output):
        leaves.append(leaf)
        size += len(leaf[1][2]) if leaf[0] == "array" else 64
        if len(leaves) > 10_000 or size > 1 << 30:
            raise SideError("it is too large")
    return leaves


def _leaves(value: Any) -> Iterator[Leaf]:
    kind = type(value)
    if isinstance(value, (float, complex)):
        yield "number", complex(value) if isinstance(value, complex) else float(value)
    elif value is None or kind in (int, str, bytes, bool):
        yield "value", value
    elif isinstance(value, Enum) or kind.__module__.partition(".")[0] in _WITH_TEXT:
        yield "value", str(value) if isinstance(value, Enum) else repr(value)
    elif isinstance(value, str):
        yield "value", str(value)
    elif isinstance(value, (list, tuple, deque)):
        yield "list", len(value)
        for part in value:
            yield from _leaves(part)
    elif isinstance(value, (set, frozenset)):
        yield "set", len(value)
        for leaves in sorted((list(_leaves(_plain(part))) for part in value), key=repr):
            yield from leaves
    elif is_dataclass(value) and not isinstance(value, (type, dict)):
        yield from _leaves({field.name: getattr(value, field.name) for field in fields(value)})
    elif isinstance(value, dict):
        yield "dict", len(value)
        entries = [(list(_leaves(_plain(key))), part) for key, part in value.items()]
        for key, part in sorted(entries, key=lambda entry: repr(entry[0])):  # equal in any order
            yield from key
            yield from _leaves(part)
    elif kind.__module__.partition(".")[0] == "torch" and hasattr(value, "detach"):
        tensor = value.detach().cpu()
        if str(tensor.layout) != "torch.strided":
            tensor = tensor.to_dense()
        name = str(tensor.dtype).partition(".")[2]
        if name.startswith(("bfloat16", "float8")):
            tensor = tensor.float()
        yield "array", (name, tuple(tensor.shape), _bytes(tensor.contiguous().numpy()))
    elif hasattr(value, "__array__"):
        array = importlib.import_module("numpy").asarray(value)
        if array.dtype.hasobject:
            raise SideError("it holds Python objects in an array")
        if array.dtype.kind not in "biufc":
            yield from _leaves(array.tolist())
            return
        yield "array", (array.dtype.name, tuple(array.shape), _bytes(array))
    elif later := value_later(value):
        yield from _leaves(later())
    else:
        raise SideError(f"it holds {kind.__module__}.{kind.__qualname__}")


def _plain(value: Any) -> Any:
    """A member of a set or a key: that of NumPy as Python's own, which equals it."""
    is_scalar = type(value).__module__ == "numpy" and hasattr(value, "item")
    return value.item() if is_scalar else value


def _bytes(array: Any) -> bytes:
    return array.tobytes()  # type: ignore[no-any-return]


def disagreement(ours: Sequence[Leaf], theirs: Sequence[Leaf], number: str = "float32") -> str:
    """Say how two outputs differ, beyond what rounding may do; empty where they agree. `number`:
    what Python's floats were computed in.
    """
    for own, other in zip(ours, theirs, strict=False):
        are_numbers = all(isinstance(leaf[1], (int, float, complex)) for leaf in (own, other))
        if own[0] != other[0] and not (are_numbers and {own[0], other[0]} == {"value", "number"}):
            return f"{_described(other)} became {_described(own)}"
        if own[0] in _CONTAINERS and own[1] != other[1]:
            return f"{_described(other)} became {_described(own)}"
        if own[0] == "array":
            problem = _arrays_disagree(own[1], other[1])
        elif "number" in (own[0], other[0]):
            problem = _numbers_disagree(own[1], other[1], _tolerance_of(number))
        else:
            problem = "" if own[1] == other[1] else _became(own[1], other[1])
        if problem:
            return problem
    return ""


def _described(leaf: Leaf) -> str:
    kind, value = leaf
    if kind == "array":
        return f"an array of shape {value[1]}"
    if kind in _CONTAINERS:
        return f"a {kind} of {value}"
    return _short(value)


def _numbers_disagree(own: complex, other: complex, allowed: float) -> str:
    same = own == other or (own != own and other != other)
    if same or abs(own - other) <= allowed * abs(other) < inf:
        return ""
    return _became(own, other)


def _became(own: Any, other: Any) -> str:
    if isinstance(own, (str, bytes)) and isinstance(other, type(own)):
        pairs = zip(own, other, strict=False)
        same = next((place for place, (one, two) in enumerate(pairs) if one != two), 0)
        if same > _LONG // 2:  # their beginnings would be alike
            shown = [_short(each[same - _LONG // 4 :]) for each in (other, own)]
            return f"from character {same - _LONG // 4} on {shown[0]} became {shown[1]}"
    return f"{_short(other)} became {_short(own)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[: _LONG - 3]}..."


def _arrays_disagree(own: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    if own[1] != other[1]:
        return f"an array of shape {other[1]} became {own[1]}"
    if own == other:
        return ""
    numpy = importlib.import_module("numpy")
    ours, theirs = (_as_array(numpy, each) for each in (own, other))
    if ours.dtype.kind not in "fc" and theirs.dtype.kind not in "fc":
        count = int((ours != theirs).sum())
        return f"{count} of {ours.size} elements differ" if count else ""
    allowed = max(map(_tolerance_of, (own[0], other[0])))
    ours, theirs = (
        each.astype("complex128" if each.dtype.kind == "c" else "float64")
        for each in (ours, theirs)
    )
    same = (ours == theirs) | (numpy.isnan(ours) & numpy.isnan(theirs))
    with numpy.errstate(invalid="ignore"):  # one infinity less another
        differences = numpy.where(same, 0.0, numpy.abs(ours - theirs))
    if not numpy.isfinite(differences).all():
        return "elements that are not finite differ"
    sizes = numpy.where(numpy.isfinite(theirs), numpy.abs(theirs), 0.0)
    beyond = differences - OF_ELEMENT * allowed * sizes
    apart = Difference(
        float((differences**2).sum()),
        float((sizes**2).sum()),
        float(beyond.max(initial=0.0)),
        ours.size,
    )
    if apart.agrees(allowed):
        return ""
    index = numpy.unravel_index(int(beyond.argmax()), beyond.shape)
    became = f"{theirs[index]:.6g} became {ours[index]:.6g}"
    place = f"element {[int(part) for part in index]}: {became}" if index else became
    if apart.error > allowed:
        return f"relative error {apart.error:.2g} of all, {allowed:.0e} is allowed; {place}"
    return f"one element is off by more than rounding; {place}"


def other_dtypes(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> str:
    """Say which dtype of an array another one became, in outputs that agree; empty where none."""
    for own, other in zip(ours, theirs, strict=True):
        if own[0] == other[0] == "array" and own[1][0] != other[1][0]:
            return f"{other[1][0]} became {own[1][0]}"
    return ""


def _tolerance_of(dtype: str) -> float:
    return TOLERANCE.get(PRECISION.get(dtype, ""), 0.0)


def _as_array(numpy: Any, leaf: tuple[Any, ...]) -> Any:
    dtype = "float32" if leaf[0].startswith(("bfloat16", "float8")) else leaf[0]
    return numpy.frombuffer(leaf[2], dtype=dtype).reshape(leaf[1])
