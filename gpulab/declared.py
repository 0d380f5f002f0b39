"""Checks of what an author declares, and their errors: of the text of a file in a list, and of its objects in a worker.

Standard library and limits only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from keyword import iskeyword
from math import isfinite
from typing import Any

from gpulab.limits import CANDIDATES, LARGEST_INTEGER, NAME_LENGTH, PARAMETERS, SPEEDUPS, SWEEP_VALUES, TEXT_LENGTH

Param = bool | int | float | str
PARAM = (bool, int, float, str)


class ScenarioError(ValueError):
    """A declaration the lab cannot accept; the message says what to write instead."""


def as_number(name: str, value: Any, kind: type[int] | type[float]) -> int | float:
    """A plain number of what may be one of numpy's or torch's."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ScenarioError(f"{name}={shown(value)} is not a number up to {LARGEST_INTEGER}") from None
    if not 0 <= number <= LARGEST_INTEGER:
        raise ScenarioError(f"{name}={shown(value)} is not a finite number of 0 or more, up to {LARGEST_INTEGER}")
    return int(value) if kind is int else number


def as_speedup(keyword: str, value: object) -> float:
    """How many times as fast something must be."""
    low, high = SPEEDUPS
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise ScenarioError(f"{keyword}={shown(value)}: a speedup is a number from {low:g} to {high:g}, such as 1.2")
    return float(value)


def as_optional_text(keyword: str, value: object) -> str | None:
    return None if value is None else as_text(keyword, value)


def as_flag(keyword: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ScenarioError(f"{keyword}= must be True or False")
    return value


def as_table(keyword: str, values: Any, kinds: tuple[type, ...]) -> dict[str, Any]:
    """A mapping of names to values of the given kinds."""
    if values is not None and not isinstance(values, Mapping):
        raise ScenarioError(f"{keyword}={shown(values)} is a {type(values).__name__}: write a dict")
    table = dict(values or {})
    if len(table) > PARAMETERS:
        raise ScenarioError(f"{keyword}= has {len(table)} names: at most {PARAMETERS}")
    for name, value in table.items():
        if not isinstance(name, str) or not isinstance(value, kinds):
            allowed = ", ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
            raise ScenarioError(f"{keyword}= maps names to {allowed}, and {shown(name)} to {shown(value)}")
        _require_text(keyword, name, NAME_LENGTH)
        _require_value(f"{keyword}= maps {name!r} to", value)
    return table


def as_sweep(name: str, values: tuple[Any, ...] | list[Any]) -> tuple[Param, ...]:
    if not 0 < len(values) <= SWEEP_VALUES:
        raise ScenarioError(f"sweep= has {len(values)} values of {name!r}: write 1 to {SWEEP_VALUES}")
    for value in values:
        if not isinstance(value, PARAM):
            raise ScenarioError(f"sweep= has numbers, texts, True and False, and for {name!r} it has {shown(value)}")
        _require_value(f"sweep= has for {name!r}", value)
    return tuple(values)


def as_params(values: Any) -> dict[str, Param]:
    """Parameters with their defaults: each name is that of an argument."""
    params = as_table("params", values, PARAM)
    for name in params:
        if name == "lab":
            raise ScenarioError("params= cannot hold 'lab': it is the first argument of every variant")
        if not name.isidentifier() or iskeyword(name):
            raise ScenarioError(f"params= holds {shown(name)}: write a name that an argument can have, such as 'n'")
    return params


def as_cases(values: Iterable[Any], allowed: tuple[str, ...]) -> tuple[str | dict[str, Param], ...]:
    """Names of a closed list, and tables of parameters."""
    if isinstance(values, (str, Mapping)):
        raise ScenarioError(f"cases={shown(values)}: write a tuple, ({shown(values)},)")
    cases: list[str | dict[str, Param]] = []
    for value in values:
        if isinstance(value, Mapping):
            cases.append(as_table("cases", value, PARAM))
        else:
            cases += as_choices("cases", (value,), allowed)
    return tuple(cases)


def as_candidates(values: Iterable[Any]) -> dict[str, Mapping[str, Param]]:
    """Configurations for `tune`, by their texts: `block=128 warps=4`."""
    candidates: dict[str, Mapping[str, Param]] = {}
    for value in values:
        if not isinstance(value, Mapping) or not value:
            raise ScenarioError(f"tune(): a candidate is {shown(value)}: write a dict such as {{'block': 128}}")
        table = as_table("candidate", value, PARAM)
        candidates.setdefault(" ".join(" ".join(f"{name}={item}".split()) for name, item in table.items()), value)
    if not 0 < len(candidates) <= CANDIDATES:
        raise ScenarioError(f"tune(): {len(candidates)} candidates: write 1 to {CANDIDATES}")
    return candidates


def as_environment(values: Any) -> dict[str, str | None]:
    environment = as_table("env", values, (str, type(None)))
    for name, value in environment.items():
        if not name or "=" in name or "\0" in f"{name}{value}":
            raise ScenarioError(f"env= holds {shown(name)}: a name has no '=', and neither it nor its value has NUL")
    return environment


def _require_value(place: str, value: object) -> None:
    """What a parameter may be: a finite number of 64 bits, or a text."""
    if isinstance(value, str):
        _require_text(place, value, TEXT_LENGTH)
    elif isinstance(value, float) and not isfinite(value):
        raise ScenarioError(f"{place} {value!r}: write a finite number")
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ScenarioError(f"{place} a whole number beyond {LARGEST_INTEGER}: write a smaller one")


def _require_text(place: str, text: str, most: int) -> None:
    if len(text) > most:
        raise ScenarioError(f"{place} a text of {len(text)} characters: at most {most}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ScenarioError(f"{place} {shown(text)}, which holds a surrogate and no character: remove it") from None


def as_text(keyword: str, value: object) -> str:
    """A text as one line."""
    if not isinstance(value, str) or not value.strip():
        raise ScenarioError(f"{keyword}= must be a short text, such as 'compute'")
    _require_text(f"{keyword}= is", value, TEXT_LENGTH)
    return " ".join(value.split())


def shown(value: object) -> str:
    """A value in a message: its beginning, whatever it is."""
    try:
        text = repr(beginning(value) if isinstance(value, str) else value)
    except Exception:  # whole numbers of over 4,300 digits have no text
        return f"some {type(value).__name__}"
    return text if isinstance(value, str) else beginning(text)


def beginning(text: str) -> str:
    """A text in a message: as much of it as a name may have."""
    return text if len(text) <= NAME_LENGTH else f"{text[:NAME_LENGTH]}... ({len(text) - NAME_LENGTH} more characters)"


def as_choices(keyword: str, values: Iterable[str], allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Words of a closed list."""
    if isinstance(values, str):
        raise ScenarioError(f"{keyword}={shown(values)} is a string: write a tuple, ({shown(values)},)")
    chosen = tuple(values)
    for value in chosen:
        if value not in allowed:
            raise ScenarioError(f"{keyword}={shown(value)} is not one of {', '.join(allowed)}")
    return chosen
