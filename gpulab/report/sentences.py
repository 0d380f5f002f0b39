"""Findings as sentences: one of each, or lines that name all the variants of which the same is
true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from gpulab.core.finding import Finding
from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.text import cut, one_line, without_boilerplate
from gpulab.draw.templates import Values, Words, filled
from gpulab.features.checks.words import CHECK_WORDS, TRUST_WORDS
from gpulab.features.doctor import words as machine
from gpulab.features.roofline import words as rooflines
from gpulab.features.telemetry import words as telemetry
from gpulab.report.words import FAILURE_WORDS, MEASUREMENT_WORDS

WORDS: Mapping[str, Words] = {
    **MEASUREMENT_WORDS,
    **CHECK_WORDS,
    **FAILURE_WORDS,
    **machine.WORDS,
    **telemetry.WORDS,
    **rooflines.WORDS,
    **TRUST_WORDS,
}
"""By the code of a finding."""
_NOT_OURS = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""Of a run file that another gpulab wrote, or somebody by hand: its codes are unknown here, or
their values others.
"""


def sentence(finding: Finding) -> str:
    """What a finding says, without the variant that it is about: one line, whatever the values
    are.
    """
    try:
        text = _sentence(finding)
    except _NOT_OURS:
        values = (f"{name} {value}" for name, value in finding.values.items())
        text = ", ".join([finding.code.replace("_", " "), *values])
    return cut(one_line(without_boilerplate(text)), TEXT_LENGTH)


def _sentence(finding: Finding) -> str:
    """One of `_NOT_OURS` where code and values are not as the lab writes them."""
    words, values = WORDS[finding.code], finding.values
    text = filled(words.sentence, {**_with_sentence_of_cause(values), "variant": finding.variant})
    if "cause" in values:  # the other values are those of the cause
        return text
    if values.get("other_inputs"):
        text = f"with other values in the inputs: {text}"
    return f"needs {need}: {text}" if (need := values.get("need")) else text


def sentence_with_place(finding: Finding) -> str:
    """What a failure says, and where it was: variant, stage, line."""
    stage, line = finding.values.get("stage"), finding.values.get("line")
    place = ", ".join(
        str(part) for part in (finding.variant, stage, f"line {line}" if line else None) if part
    )
    return f"{sentence(finding)} ({one_line(place)})" if place and stage else sentence(finding)


def with_reason(message: str, reason: Finding | None) -> str:
    """A message, and the reason behind it."""
    return f"{message}: {sentence(reason)}" if reason else message


def lines(findings: Iterable[Finding]) -> list[str]:
    """A line a finding; findings of several variants that say the same are one line, which names
    them.
    """
    groups: dict[tuple[str, bool], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.variant is not None), []).append(finding)
    return [line for group in groups.values() for line in _lines_of_group(group)]


def _lines_of_group(group: Sequence[Finding]) -> list[str]:
    words = WORDS.get(group[0].code)
    if len(group) > 1 and group[0].variant is not None and words and words.several:
        with suppress(*_NOT_OURS):
            parts = [f"{finding.variant} {filled(words.each, finding.values)}" for finding in group]
            return [one_line(f"{filled(words.several, group[0].values)} {', '.join(parts)}")]
    variants: dict[str, list[str]] = {}
    for finding in group:
        variants.setdefault(sentence(finding), []).extend(
            [finding.variant] if finding.variant else []
        )
    return [
        f"{one_line(', '.join(names))}: {text}" if names else text
        for text, names in variants.items()
    ]


def _with_sentence_of_cause(values: Values) -> Values:
    """A cause is the code of another finding, whose values stand beside it: here it becomes that
    one's sentence.
    """
    code = values.get("cause")
    if isinstance(code, str) and code in WORDS:
        others = {name: value for name, value in values.items() if name != "cause"}
        return {**values, "cause": sentence(Finding(code=code, values=others))}
    return values
