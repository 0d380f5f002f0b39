"""Findings: what the reader of a result must know, as data, each declared once with its words.

A declaration stands in the `findings.py` of the folder that makes it. Its name is the code of the
finding and its keywords are the typed values. The sentence is a template of them, or, where it
depends on more than their format, the body of the function. A field of a template is formatted as
in str.format, or by a function of `units`: {step_s:seconds}, {count:plural process/processes}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from inspect import CO_VARKEYWORDS
from string import Formatter
from typing import Any, Generic, ParamSpec, TypedDict, Unpack

import msgspec

from gpulab.core.statuses import CheckKind
from gpulab.core.units import byte_count, plural, rate, seconds, times
from gpulab.core.values import Integer, Name, Text

Value = bool | Integer | float | Text | list[Text] | None
Values = ParamSpec("Values")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A `code` in snake_case, the `variant` it is about (None: the whole run), and its numbers and
    names.

    Seconds end in `_s`, shares are fractions of 1, sizes are bytes. Text of a scenario, such as the
    message of an exception, is a value like any other: it is made safe where it is shown.
    """

    code: Name
    variant: Name | None = None
    values: dict[str, Value] = {}


class Rank(IntEnum):
    """The effect of a finding on a result."""

    INVALIDATING = 0
    WEAKENING = 1
    EXPLAINING = 2
    REMARK = 3


class Options(TypedDict, total=False):
    """The options of a declaration beside its sentence."""

    rank: Rank
    """WEAKENING where it is not named."""
    check: CheckKind
    """The check of a comparison that it casts doubt on."""
    shows: CheckKind
    """The check that it is the result of, where that passed."""
    doubt: bool
    """Whether it casts doubt on a comparison; implied by a check."""
    short: str
    """A template of its few words in the line with a grade; else what stands before its first
    colon.
    """
    several: str
    """Begins one line about several variants; without it, those of one sentence share a line."""
    each: str | Callable[..., str]
    """What this line says of each variant."""


_UNITS: dict[str, Callable[[Any], str]] = {
    "seconds": seconds,
    "times": times,
    "bytes": byte_count,
    "rate": rate,
    "list": ", ".join,
}


class _Template(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        kind, _, noun = format_spec.partition(" ")
        if kind == "plural":
            return plural(value, *noun.split("/"))
        if kind in _UNITS:
            return _UNITS[kind](value)
        return format(value, format_spec)


_TEMPLATE = _Template()


def fill(template: str, values: Mapping[str, Value]) -> str:
    """The template of a sentence with its values; LookupError where one is missing."""
    return _TEMPLATE.vformat(template, (), values)


class Declaration(Generic[Values]):
    """One kind of finding: its code, its words, and what it changes.

    Called with the variant it is about and its values, it makes a finding.
    """

    def __init__(
        self,
        words: Callable[Values, str | None],
        sentence: str | Callable[..., str],
        options: Options,
    ) -> None:
        self.code = words.__name__
        self.rank = options.get("rank", Rank.WEAKENING)
        self.check = options.get("check")
        self.shows = options.get("shows")
        self.doubt = options.get("doubt", False) or self.check is not None
        self.several = options.get("several", "")
        self.words = words
        self._short = options.get("short", "")
        self._sentence = sentence
        self._each = options.get("each", sentence)

    def __call__(
        self, variant: str | None = None, /, *_: Values.args, **values: Values.kwargs
    ) -> Finding:
        return Finding(code=self.code, variant=variant, values=values)  # type: ignore[arg-type]

    def from_values(self, values: Mapping[str, Value], variant: str | None = None) -> Finding:
        """With values that are known by name only while it runs."""
        return Finding(code=self.code, variant=variant, values=dict(values))

    def caused_by(self, cause: Finding, variant: str | None = None) -> Finding:
        """With another finding as its cause: its code, and its values beside it."""
        return self.from_values({"cause": cause.code, **cause.values}, variant)

    def sentence(self, finding: Finding) -> str:
        """TypeError, ValueError and the like where its values are not those declared."""
        return _render(self._sentence, finding)

    def short_sentence(self, finding: Finding) -> str:
        """In a few words: those declared, or what stands before the first colon."""
        return _render(self._short, finding) or self.sentence(finding).partition(":")[0]

    def each_sentence(self, finding: Finding) -> str:
        """Return the text about one variant in the line about several."""
        return _render(self._each, finding)


def finding(
    sentence: str = "", **options: Unpack[Options]
) -> Callable[[Callable[Values, str | None]], Declaration[Values]]:
    """Declares a finding: its sentence is a template of its values, or what the function returns.

    A function that names `variant: str = ""` gets the name of the variant; a template may name it.
    """

    def declare(words: Callable[Values, str | None]) -> Declaration[Values]:
        return Declaration(words, sentence or words, options)  # type: ignore[arg-type]

    return declare


def _render(template: str | Callable[..., str], finding: Finding) -> str:
    """A finding may have more values than its template uses: a stage, a need."""
    values = {**finding.values, "variant": finding.variant}
    if isinstance(template, str):
        return fill(template, values)
    code = template.__code__
    if not code.co_flags & CO_VARKEYWORDS:
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = {name: values[name] for name in names if name in values}
    text = template(**values)
    if not isinstance(text, str):
        raise TypeError("a value that is the sentence is no text")
    return text
