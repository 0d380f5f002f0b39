"""The source of each variant, its helpers and its kernels, with what differs from the baseline
marked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from itertools import dropwhile
from math import prod

from gpulab.core.payloads import KernelText
from gpulab.core.units import plus_minus, seconds
from gpulab.draw.blocks import Block, Code, Group, Heading, Text
from gpulab.draw.highlight import highlighted
from gpulab.draw.styles import STYLES
from gpulab.features import present
from gpulab.features.code.analysis import SourceFunction, VariantCode, definition_of, variant_code
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.stats.verdicts import in_bar

_MOST_PAIRS = 10_000_000
"""Of lines that are compared with one another: more would take seconds."""


def changed_lines(lines: Sequence[str], others: Sequence[str]) -> set[int]:
    """Places of the lines that the others do not have, nor in their order; of long texts those they
    have nowhere.
    """
    if len(lines) * len(others) > _MOST_PAIRS:
        theirs = set(others)
        return {place for place, line in enumerate(lines) if line not in theirs}
    changes = SequenceMatcher(None, others, lines, autojunk=False).get_opcodes()
    return {
        place
        for kind, _, _, start, end in changes
        if kind in ("insert", "replace")
        for place in range(start, end)
    }


_NUMBERS = re.compile(r"(%\w+?|\b[URPB]+|\$L__BB|\.L_x_|_param_)\d+(?:_\d+)?")
_NAMES = re.compile(r"\b_Z\w+")
_PLACE = re.compile(r"^\s*(//.*|\.loc\b.*)?$")


def machine_code(
    listings: Mapping[str, Sequence[tuple[str, Sequence[str]]]],
    against: Mapping[str, str],
    shown: Sequence[str],
) -> Block:
    """A part for each of the `shown` variants; `listings` has (name, lines) of the kernels of all
    of them.

    Compared without the numbers of registers and labels, which the compiler gives out anew each
    time.
    """
    parts: list[Block] = []
    for name in shown:
        others = (against.get(name, ""), *listings)
        other = next((each for each in others if each in listings and each != name), "")
        theirs = [line for _, lines in listings.get(other, ()) for line in lines]
        for kernel, lines in listings.get(name, ()):
            parts.append(Heading(f"{name} · {kernel}{f' · + is not in {other}' * bool(other)}"))
            text = Text()
            marked = _differing(lines, theirs) if theirs else set()
            for place, line in enumerate(lines):
                mark, mark_style, style = " ", "dim", "dim"
                if place in marked:
                    mark, mark_style, style = "+", "bold", ""
                text.append(f"{mark} ", mark_style)
                text.append(line.expandtabs(4).rstrip() + "\n", style)
            parts += [text, ""]
    return Group(*parts)


def _differing(lines: Sequence[str], others: Sequence[str]) -> set[int]:
    places = changed_lines(
        [_without_numbers(line) for line in lines], [_without_numbers(line) for line in others]
    )
    return {place for place in places if not _PLACE.match(lines[place])}


def _without_numbers(line: str) -> str:
    return _NAMES.sub("kernel", _NUMBERS.sub(r"\1", line.replace(".reuse", "")))


_AROUND = 4
"""Lines above and below one that failed."""


def code_view(
    source: str,
    variants: Sequence[str],
    report: RunReport | None,
    kernels: Mapping[str, Sequence[KernelText]] | None = None,
    made: Block | None = None,
) -> Group:
    """A part a variant, with the helpers that not all call, and its CUDA C++ kernels; below them
    what the compiler `made` of those, and the operations that each ran, where it was profiled.
    """
    marked = marked_code(source, variants, report, kernels)
    if not marked:
        whole = SourceFunction("", 1, source.splitlines() or ["the file cannot be read"])
        return Group(MarkedCode(whole, failed=_failed_lines(None, report)).block)
    parts = list(_parts_of(marked, report))
    functions = [block.code for each in marked for block in each.functions]
    for number, around in _failed_elsewhere(source, functions, report):
        block = MarkedCode(around, failed=_failed_lines(None, report)).block
        parts += [Heading(f"line {number}, outside of the variants"), block, ""]
    if made is not None:
        parts += [made, ""]
    goodput = present("goodput.operation_table")
    if report is not None and goodput and (ran := goodput.operations(report)) is not None:
        parts += [ran, ""]
    kept = len(source.splitlines()) - sum(len(code.lines) for code in functions)
    parts.append(Text(f"{SIGNS}; {kept} more lines of the file are shared", "dim"))
    return Group(*parts)


def code_parts(
    source: str,
    report: RunReport,
    kernels: Mapping[str, Sequence[KernelText]],
) -> Iterator[Block]:
    """The code of the variants of a run, and what the signs mean; nothing of an unreadable file."""
    names = [variant.name for variant in report.variants]
    marked = marked_code(source, names, report, kernels)
    yield from _parts_of(marked, report)
    if len(marked) > 1:
        yield Text(f"{SIGNS}; lines that all variants share are left out", "dim")


def _parts_of(marked: Sequence[MarkedVariant], report: RunReport | None) -> Iterator[Block]:
    above: set[int] = set()
    for each in marked:
        words, style = measured(each.name, report)
        yield Heading(f"{each.name}{' · the baseline' * each.is_baseline}", words, style)
        for place, function in enumerate(each.functions):
            if place:
                yield ""
            yield function.block
        if each.above:
            yield Text(f"{', '.join(each.above)}: above", "dim")
        for kernel in each.kernels:
            known = kernel.code.first in above
            yield Text(f"{kernel.caption}{': above' * known}", "italic")
            if not known:
                above.add(kernel.code.first)
                yield kernel.block
        yield ""


SIGNS = "- only in the baseline, + not in it"
"""What the signs before lines mean."""


@dataclass(frozen=True)
class MarkedCode:
    """Lines of a file: a `sign` before those `changed`, by their places, and by the number of a
    line what `failed` there.
    """

    code: SourceFunction
    changed: Collection[int] = ()
    sign: str = ""
    failed: Mapping[int, str] = field(default_factory=dict)
    language: str = "python"
    caption: str = ""

    @property
    def block(self) -> Code:
        """With each line in its colours."""
        whole = "\n".join(self.code.lines)
        lines = highlighted(whole, self.language).split(allow_blank=True)[: len(self.code.lines)]
        signs = [self.sign if place in self.changed else " " for place in range(len(lines))]
        numbers = range(self.code.first, self.code.first + len(lines))
        return Code(list(zip(numbers, signs, lines, strict=True)), self.failed)


@dataclass(frozen=True)
class MarkedVariant:
    """The function of a variant, the helpers that are met first there, the names of those `above`,
    and its kernels in CUDA C++.
    """

    name: str
    is_baseline: bool
    functions: Sequence[MarkedCode]
    above: Sequence[str]
    kernels: Sequence[MarkedCode]


def marked_code(
    source: str,
    variants: Sequence[str],
    report: RunReport | None,
    kernels: Mapping[str, Sequence[KernelText]] | None = None,
) -> list[MarkedVariant]:
    """Every variant with what differs from the baseline marked; nothing of a file that cannot be
    read.
    """
    codes = variant_code(source, variants)
    marked: list[MarkedVariant] = []
    shown: set[int] = set()
    for name, code in codes.items():
        against, sign = _against(name, codes)
        failed = _failed_lines(name, report)
        reference = None
        if against is not None:
            reference = _joined([against.function.of_any_name, *against.helpers])
        differ = _changed_lines(code.function.of_any_name, reference)
        functions = [MarkedCode(code.function, differ, sign, failed)]
        functions += [
            MarkedCode(helper, _changed_lines(helper, reference), sign, failed)
            for helper in code.helpers
            if helper.first not in shown
        ]
        above = dict.fromkeys(helper.name for helper in code.helpers if helper.first in shown)
        in_cuda = list(_kernel_code_of(name, codes, kernels or {}, sign))
        marked.append(MarkedVariant(name, sign == "-", functions, list(above), in_cuda))
        shown |= {block.code.first for block in functions}
    return marked


def lines_between(
    source: str, pair: tuple[str, str], kernels: Mapping[str, Sequence[KernelText]]
) -> tuple[int, int] | None:
    """How many lines the second of two variants has that the first has not, and the other way
    round, with the helpers and kernels of each; None where the file does not have both.
    """
    codes = variant_code(source, pair)
    if len(codes) < 2:
        return None
    before, after = (_whole(codes[name], kernels.get(name, ())) for name in pair)
    return len(_changed_lines(after, before)), len(_changed_lines(before, after))


def _whole(code: VariantCode, kernels: Sequence[KernelText]) -> SourceFunction:
    """The lines of a variant from its `def` on, of its helpers, and of its kernels in CUDA C++."""
    function = code.function.of_any_name
    lines = list(dropwhile(lambda line: not line.startswith(("def", "async")), function.lines))
    body = replace(function, lines=lines)
    return _joined([body, *code.helpers, *map(_kernel_code, dict.fromkeys(kernels))])


def _against(name: str, codes: Mapping[str, VariantCode]) -> tuple[VariantCode | None, str]:
    """Return what a variant's lines are compared with, and the sign of those that differ: the
    baseline with the next one.
    """
    baseline, *others = codes
    if name != baseline:
        return codes[baseline], "+"
    if not others:
        return None, "-"
    return codes[others[0]], "-"


def _joined(functions: Iterable[SourceFunction]) -> SourceFunction:
    return SourceFunction("", 1, [line for function in functions for line in function.lines])


def _kernel_code_of(
    name: str,
    codes: Mapping[str, VariantCode],
    kernels: Mapping[str, Sequence[KernelText]],
    sign: str,
) -> Iterator[MarkedCode]:
    """The kernels of a variant as CUDA C++, against those of the baseline; of the baseline against
    the next variant.
    """
    first, *others = codes
    against = first
    if name == first:
        against = next((other for other in others if kernels.get(other)), "")
    theirs = [_kernel_code(text) for text in kernels.get(against, ())]
    whole = _joined(theirs) if theirs else None
    named = {text.name: text for text in reversed(kernels.get(name, ()))}
    for text in reversed(named.values()):
        code = _kernel_code(text)
        block = "" if text.threads is None else f", {prod(text.threads)} threads a block"
        changed = _changed_lines(code, whole)
        yield MarkedCode(code, changed, sign, {}, "cuda", f"{text.name}{block}")


def _kernel_code(text: KernelText) -> SourceFunction:
    return SourceFunction(text.name, *definition_of(text))


def measured(name: str, report: RunReport | None) -> tuple[str, str]:
    """(time, speedup and verdict of a variant, their style)."""
    if report is None or name not in (each.name for each in report.variants):
        return "", ""
    variant = report.variant(name)
    text = ""
    if time := variant.time_per(report.per):
        text = f"{seconds(time.value)} {plus_minus(time)}".strip()
    comparison = report.comparison(name)
    if comparison is None or comparison.speedup is None:
        return text or variant.status, STYLES[variant.status]
    return f"{text}  {in_bar(comparison)}", STYLES[comparison.verdict]


def _changed_lines(code: SourceFunction, other: SourceFunction | None) -> set[int]:
    """Places of the lines that the other function does not have."""
    if other is None:
        return set()
    return {place for place in changed_lines(code.lines, other.lines) if code.lines[place].strip()}


def _failed_elsewhere(
    source: str, functions: Iterable[SourceFunction], report: RunReport | None
) -> Iterator[tuple[int, SourceFunction]]:
    """(number, the lines around it) of each that failed outside of these functions: in a helper, or
    at load.
    """
    lines = source.splitlines()
    inside = {code.first + place for code in functions for place in range(len(code.lines))}
    for number in sorted(_failed_lines(None, report).keys() - inside):
        if number <= len(lines):
            first = max(1, number - _AROUND)
            yield number, SourceFunction("", first, lines[first - 1 : number + _AROUND])


def _failed_lines(name: str | None, report: RunReport | None) -> Mapping[int, str]:
    """By its line what failed in a variant; without a name, in any."""
    failures = [] if report is None else report.failures
    return {
        failure.line: sentence(failure.cause)
        for failure in failures
        if failure.line and (name is None or failure.variant in (name, None))
    }
