"""Findings as sentences: one for each, or one line for all variants with the same finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from gpulab.core.findings import Declaration, Finding, Rank
from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.statuses import CheckKind
from gpulab.core.text import cut, one_line, without_boilerplate
from gpulab.features import folders, present

PARTS = "+"
"""The key that the parts of features have before they are put among the others."""
_known: dict[str, Declaration[Any]] = {}
_CORE = (
    "gpulab.catalog.findings",
    "gpulab.core.failures",
    "gpulab.engine.findings",
    "gpulab.stats.findings",
    "gpulab.report.findings",
)
_unread = [*_CORE, *folders()]
"""Where findings are declared, and nobody has looked yet."""


def declaration_of(code: str) -> Declaration[Any] | None:
    """None for a finding of another version, or of a feature that was taken out."""
    while code not in _known and _unread:
        place = _unread.pop(0)
        module = import_module(place) if place in _CORE else present(f"{place}.findings")
        declared = vars(module).values() if module else ()
        _known.update({each.code: each for each in declared if isinstance(each, Declaration)})
    return _known.get(code)


def declarations() -> Mapping[str, Declaration[Any]]:
    """By the code of a finding: those of the core, and of the features that are there."""
    declaration_of("")
    return _known


_MALFORMED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""Errors for findings of another version of gpulab or of an edited file: unknown codes, other
values.
"""


def sentence(finding: Finding) -> str:
    """The sentence of a finding, without its variant: one line, for any values."""
    try:
        text = _sentence(finding)
    except _MALFORMED:
        values = (f"{name} {value}" for name, value in finding.values.items())
        text = ", ".join([finding.code.replace("_", " "), *values])
    return cut(one_line(without_boilerplate(text)), TEXT_LENGTH)


def _sentence(finding: Finding) -> str:
    """Raises one of `_MALFORMED` for an unknown code or other values."""
    declaration = declaration_of(finding.code)
    if declaration is None:
        raise LookupError(finding.code)
    text = declaration.sentence(_with_sentence_of_cause(finding))
    if "cause" in finding.values:  # the other values are those of the cause
        return text
    if finding.values.get("other_inputs"):
        text = f"with other values in the inputs: {text}"
    if finding.values.get("both_draw"):
        text = f"{text}; both draw random numbers, which may be others"
    if need := finding.values.get("need"):
        text = f"needs {need}: {text}"
    return text


def _with_sentence_of_cause(finding: Finding) -> Finding:
    """With the sentence of its cause: the code of another finding, whose values are beside it."""
    values = dict(finding.values)
    cause = values.pop("cause", None)
    if not isinstance(cause, str) or declaration_of(cause) is None:
        return finding
    text = sentence(Finding(code=cause, values=values))
    return Finding(code=finding.code, variant=finding.variant, values={"cause": text})


def sentence_with_place(finding: Finding) -> str:
    """The sentence of a failure with its place: variant, stage, line."""
    stage = finding.values.get("stage")
    line = finding.values.get("line")
    if not stage:
        return sentence(finding)
    parts = [finding.variant, str(stage)]
    if line:
        parts.append(f"line {line}")
    place = ", ".join(part for part in parts if part)
    return f"{sentence(finding)} ({one_line(place)})"


def with_reason(message: str, reason: Finding | None) -> str:
    if reason is None:
        return message
    return f"{message}: {sentence(reason)}"


def short_sentence(finding: Finding) -> str:
    """A finding in a few words."""
    declaration = declaration_of(finding.code)
    if declaration:
        with suppress(*_MALFORMED):
            return one_line(declaration.short_sentence(finding))
    return sentence(finding).partition(":")[0]


def rank_of(finding: Finding) -> Rank:
    """Return the rank of a finding: what it changes in a result."""
    declaration = declaration_of(finding.code)
    return declaration.rank if declaration else Rank.WEAKENING


def doubted_check(finding: Finding) -> CheckKind | None:
    """The check of a comparison that a finding casts doubt on."""
    declaration = declaration_of(finding.code)
    return declaration.check if declaration else None


def is_doubt(finding: Finding) -> bool:
    """Return whether a finding casts doubt on a comparison."""
    declaration = declaration_of(finding.code)
    return declaration is not None and declaration.doubt


def lines(findings: Iterable[Finding]) -> list[str]:
    """A line for each finding; the same finding of several variants is one line that names them."""
    groups: dict[tuple[str, bool], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.variant is not None), []).append(finding)
    return [line for group in groups.values() for line in _lines_of_group(group)]


def _lines_of_group(group: Sequence[Finding]) -> list[str]:
    declaration = declaration_of(group[0].code)
    if declaration and declaration.several and len(group) > 1 and group[0].variant is not None:
        with suppress(*_MALFORMED):
            parts = [f"{finding.variant} {declaration.each_sentence(finding)}" for finding in group]
            return [one_line(f"{declaration.several} {', '.join(parts)}")]
    variants: dict[str, list[str]] = {}
    for finding in group:
        names = variants.setdefault(sentence(finding), [])
        if finding.variant:
            names.append(finding.variant)
    listed = []
    for text, names in variants.items():
        listed.append(f"{one_line(', '.join(names))}: {text}" if names else text)
    return listed


def with_sentences(value: Any) -> Any:
    """Return the data of JSON, with a `sentence` beside the code of every finding, and beside the
    verdict of every comparison what is `shown`.
    """
    if isinstance(value, list):
        return [with_sentences(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"code", "variant", "values"} and isinstance(value["values"], dict):
        text = sentence(msgspec.convert(value, Finding))
        return {"code": value["code"], "sentence": text, **value}
    named = {name: with_sentences(item) for name, item in value.items()}
    for ratio in _RATIOS:
        if ratio in value and value.get("verdict") is not None:
            from gpulab.stats.verdicts import shown_in_json

            named["shown"] = shown_in_json(value["verdict"], value[ratio], value)
    return named


_RATIOS = ("speedup", "ratio")
"""What a verdict stands beside: of a run, and of a comparison of two."""


def _key_of_kind(kind: str) -> str:
    return kind.replace(" ", "_").replace("-", "_")


def _key_of_field(name: str) -> str:
    from gpulab.features.telemetry.fields import json_key  # no text needs it

    return json_key(name)


_BY_KIND = frozenset(("partition", "repeated", "seconds", "copies_s", "exposed_s", "clocks_s"))
"""Fields whose keys are kinds of time, copies or clocks: `data wait` is data_wait in JSON."""
_BY_FIELD = frozenset(("last", "peaks", "limits", "means", "unsupported"))
"""Fields whose keys are fields of telemetry: `power` is power_w in JSON."""


def builtins_of(value: Any) -> Any:
    """Return the data of JSON, with the parts that features add among the report's fields."""
    return _flatten_parts(msgspec.to_builtins(value))


def _flatten_parts(value: Any) -> Any:
    if isinstance(value, list):
        return [_flatten_parts(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {name: _flatten_parts(item) for name, item in value.items() if name != PARTS}
    for part in value.get(PARTS, ()):
        fields |= _flatten_parts(part)
    for name in fields.keys() & (_BY_KIND | _BY_FIELD):
        if isinstance(fields[name], dict):
            key_of = _key_of_kind if name in _BY_KIND else _key_of_field
            fields[name] = {key_of(key): item for key, item in fields[name].items()}
    return fields


def to_json(value: Any) -> bytes:
    """A report as JSON, with the sentences of its findings; UnicodeEncodeError where text of it is
    no Unicode, such as the name of a file.
    """
    return msgspec.json.encode(with_sentences(builtins_of(value)))
