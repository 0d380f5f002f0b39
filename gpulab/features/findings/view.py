"""What the rules found: a line for each under the limit of its variant, and the whole with evidence
and code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.core.units import byte_count, rate, seconds
from gpulab.draw.blocks import Block, Group, Inside, Text
from gpulab.features.findings.advice import Advice, Evidence, NotJudged
from gpulab.report.report import VariantReport
from gpulab.report.sentences import sentence

_DISTURBED = 0.5
"""Of the time: with more of it taken by other work, what no rule finds may be there."""


def lines(variant: VariantReport, most: int | None = None, *, named: bool = False) -> list[Text]:
    """One for each finding: what it is, what to change, where to learn it. `named`: with the name
    of the variant, where no line above has it.
    """
    start = variant.name if named else " "
    return [_line(advice, start) for advice in variant.advice[:most]]


def _line(advice: Advice, start: str) -> Text:
    # indented by spaces: a Padding cuts what a pipe gets at 80 columns
    text = Text(f"{start} → ", "dim")
    text.append(sentence(advice.finding), "not dim")
    text.append(f": {advice.change}", "not dim")
    return text.append(f"; lesson {advice.lesson}", "dim")


def advice_of(variants: Sequence[VariantReport]) -> Block | None:
    """The same below a heading; None without any finding."""
    parts = advice(variants)
    return Group(Text("findings", "bold"), *parts) if parts else None


def advice(variants: Sequence[VariantReport]) -> list[Block]:
    """Each finding with its numbers and the code to write."""
    parts: list[Block] = []
    for variant in variants:
        for number, found in enumerate(variant.advice, start=1):
            title = Text(f"{variant.name} {number}: ", "bold")
            title.append(sentence(found.finding), "not bold")
            parts.append(title)
            parts.append(Inside(Group(*_details(found)), left=2))
    return parts


def _details(advice: Advice) -> Iterator[Text]:
    numbers = "; ".join(number(each) for each in advice.evidence)
    if numbers:
        yield Text(f"evidence: {numbers}", "dim")
    yield Text(f"change: {advice.change} (lesson {advice.lesson})")
    for code in advice.code:
        yield Text(f"  {code}", "cyan", no_wrap=True, overflow="ellipsis")


def number(evidence: Evidence) -> str:
    """One number with its unit, and where it is from."""
    return f"{evidence.name} {amount(evidence)} ({evidence.source})"


def amount(evidence: Evidence) -> str:
    value = evidence.value
    match evidence.unit:
        case "share":
            return f"{value:.0%}".replace("-0%", "0%") if abs(value) < 0.01 else f"{value:.0%}"
        case "s":
            return seconds(value)
        case "bytes":
            return byte_count(value)
        case "FLOP/s":
            return f"{rate(value)}FLOP/s"
        case _:
            number = f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
            return f"{number} {evidence.unit}"


def missing(variants: Sequence[VariantReport]) -> list[str]:
    """Return what was not measured, and what brings it: a line for each measurement."""
    names: dict[NotJudged, None] = {}
    for variant in variants:
        for each in variant.not_judged:
            names.setdefault(NotJudged(code="", missing=each.missing, flags=each.flags))
    lines = []
    for each in names:
        brings = f": {each.flags}" if each.flags else ""
        lines.append(f"{each.missing}{brings}")
    return lines
