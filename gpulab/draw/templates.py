"""How the words of a finding are written down: templates with the lab's own units, or a function of
the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any

from gpulab.core.units import byte_count, seconds, times

Values = Mapping[str, Any]
Template = str | Callable[[Values], str]


@dataclass(frozen=True)
class Words:
    """The sentence of one finding. Of several variants one line: `several` begins it, `each` is
    said of a variant.

    Where these two are empty, variants of which the same sentence is true share it.
    """

    sentence: Template
    several: Template = ""
    each: Template = ""


class _Formatter(Formatter):
    """Python's format specifications, and: seconds, bytes, times, and `count singular|plural`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return "unknown"
        if isinstance(value, list):
            return ", ".join(map(str, value))
        if format_spec.startswith("count "):
            singular, _, plural = format_spec.removeprefix("count ").partition("|")
            return f"{value:,} {singular if value == 1 else plural}"
        if own := _FORMATS.get(format_spec):
            return own(value)
        return super().format_field(value, format_spec)  # type: ignore[no-any-return]


_FORMATS: dict[str, Callable[[float], str]] = {
    "seconds": seconds,
    "bytes": byte_count,
    "times": times,
}
_formatter = _Formatter()


def filled(template: Template, values: Values) -> str:
    """The template with the values. KeyError where one is missing."""
    return template(values) if callable(template) else _formatter.vformat(template, (), values)
