"""The source of each variant, with what differs from the baseline marked, and where it failed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from rich.console import Group, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from gpulab.analysis.kernels.definition import definition_of
from gpulab.protocol.kernels import KernelText
from gpulab.report.report import RunReport
from gpulab.views.findings import sentence
from gpulab.views.operations import operations
from gpulab.views.pages.differing import differing
from gpulab.views.text import STYLES, Glyphs, plus_minus, seconds, times

_AROUND = 4
"""Lines above and below one that failed."""
FAILED_HERE = "  ◀ "
"""Between a line and the message of what failed there."""
_NUMBER = 4
_WIDTH = 80


@dataclass(frozen=True)
class _Code:
    """A function: its first line, decorators included, and its lines."""

    first: int
    lines: Sequence[str]


def code_view(
    source: str,
    variants: Sequence[str],
    report: RunReport | None,
    glyphs: Glyphs,
    width: int | None,
    kernels: Mapping[str, Sequence[KernelText]] | None = None,
    made: RenderableType | None = None,
) -> RenderableType:
    """A part a variant, with its CUDA C++ kernels; below them what the compiler `made` of those, and the operations
    that each ran, where it was profiled. Without a `width` lines are whole, however long.
    """
    functions = _functions(source, variants)
    if not functions:
        whole = _Code(1, source.splitlines() or ["the file cannot be read"])
        return _lines(whole, set(), "", _failed_lines(None, report), glyphs, width)
    baseline = functions.get(variants[0])
    parts: list[RenderableType] = []
    for name, code in functions.items():
        other = next((each for each in functions.values() if each is not code), None) if code is baseline else baseline
        sign = "-" if code is baseline else "+"
        heading = _heading(name, report, glyphs, width, first=code is baseline)
        parts += [
            heading,
            _lines(code, _differing_lines(code, other), sign, _failed_lines(name, report), glyphs, width),
            *_kernel_parts(name, functions, kernels or {}, sign, glyphs, width),
            "",
        ]
    for number, code in _failed_elsewhere(source, functions.values(), report):
        heading = _rule(f"line {number}, outside of the variants", "", glyphs, width)
        parts += [heading, _lines(code, set(), "", _failed_lines(None, report), glyphs, width), ""]
    parts += [made, ""] if made is not None else []
    if report is not None and (ran := operations(report, glyphs)) is not None:
        parts += [ran, ""]
    opens = ": e opens it" if width else ""  # on the screen
    kept = len(source.splitlines()) - sum(len(code.lines) for code in functions.values())
    parts.append(Text(f"- only in the baseline, + not in it; {kept} more lines of the file are shared{opens}", "dim"))
    return Group(*parts)


def _kernel_parts(
    name: str,
    functions: Mapping[str, _Code],
    kernels: Mapping[str, Sequence[KernelText]],
    sign: str,
    glyphs: Glyphs,
    width: int | None,
) -> Iterator[RenderableType]:
    """The kernels of a variant as CUDA C++, against those of the baseline; of the baseline against the next variant."""
    first, *others = functions
    against = next((other for other in others if kernels.get(other)), "") if name == first else first
    theirs = [_kernel_code(text) for text in kernels.get(against, ())]
    whole = _Code(1, [line for code in theirs for line in code.lines]) if theirs else None
    named = {text.name: text for text in reversed(kernels.get(name, ()))}
    for text in reversed(named.values()):
        code = _kernel_code(text)
        block = "" if text.threads is None else f", {prod(text.threads)} threads a block"
        yield Text(glyphs(f"{'':{_NUMBER}}   {text.name}{block}"), "italic")
        yield _lines(code, _differing_lines(code, whole), sign, {}, glyphs, width, language="cuda")


def _kernel_code(text: KernelText) -> _Code:
    return _Code(*definition_of(text))


def _functions(source: str, variants: Sequence[str]) -> dict[str, _Code]:
    """The functions of these names at the top of the file, in the order of the names."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    lines = source.splitlines()
    functions = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in variants:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            functions[node.name] = _Code(first, lines[first - 1 : node.end_lineno])
    return {name: functions[name] for name in variants if name in functions}


def _heading(name: str, report: RunReport | None, glyphs: Glyphs, width: int | None, *, first: bool) -> Text:
    """A rule with the name at its left, and what was measured at its right."""
    right, style = _measured(name, report)
    return _rule(f"{name}{' · the baseline' if first else ''}", right, glyphs, width, style)


def _rule(left: str, right: str, glyphs: Glyphs, width: int | None, style: str = "") -> Text:
    left, right = f"── {left} ", f" {right} ──" if right else "──"
    text = Text(glyphs(left), "bold", no_wrap=True, overflow=glyphs.overflow)
    text.append(glyphs("─" * max(2, (width or _WIDTH) - len(left) - len(right))), "not bold dim")
    return text.append(glyphs(right), f"not bold {style}".strip())


def _measured(name: str, report: RunReport | None) -> tuple[str, str]:
    variant = next((each for each in report.variants if each.name == name), None) if report else None
    if report is None or variant is None:
        return "", ""
    time = variant.time_per(report.per)
    text = f"{seconds(time.median)} {plus_minus(time.low, time.high, time.median)}".strip() if time else ""
    comparison = report.comparison(name)
    if comparison and comparison.speedup is not None:
        return f"{text}  {times(comparison.speedup)} {comparison.verdict}", STYLES[comparison.verdict]
    return text or variant.status, STYLES[variant.status]


def _lines(
    code: _Code,
    differing: set[int],
    sign: str,
    failed: Mapping[int, str],
    glyphs: Glyphs,
    width: int | None,
    *,
    language: str = "python",
) -> Text:
    """Numbered lines in their colours; a sign before each that the other one does not have."""
    highlighted = Syntax("", language, theme="ansi_dark").highlight(glyphs.block("\n".join(code.lines)))
    text = Text(no_wrap=True, overflow=glyphs.overflow if width else "ignore")
    for place, line in enumerate(highlighted.split("\n", allow_blank=True)[: len(code.lines)]):
        number = code.first + place
        mark = sign if place in differing else " "
        text.append(f"{number:>{_NUMBER}} ", "dim")
        text.append(f"{mark} ", "bold" if mark != " " else "")
        text.append_text(line)
        if number in failed:
            message = glyphs(f"{FAILED_HERE}{failed[number]}")
            fits = _NUMBER + 3 + line.cell_len + len(message) <= (width or _WIDTH)
            text.append(message if fits else f"\n{'':>{_NUMBER + 1}}{message}", "bold red")
        text.append("\n")
    text.rstrip()
    return text


def _differing_lines(code: _Code, other: _Code | None) -> set[int]:
    """Places of the lines that the other function does not have."""
    if other is None:
        return set()
    return {place for place in differing(code.lines, other.lines) if code.lines[place].strip()}


def _failed_elsewhere(source: str, functions: Iterable[_Code], report: RunReport | None) -> Iterator[tuple[int, _Code]]:
    """(number, the lines around it) of each that failed outside of these functions: in a helper, or at load."""
    lines = source.splitlines()
    inside = {code.first + place for code in functions for place in range(len(code.lines))}
    for number in sorted(_failed_lines(None, report).keys() - inside):
        if number <= len(lines):
            first = max(1, number - _AROUND)
            yield number, _Code(first, lines[first - 1 : number + _AROUND])


def _failed_lines(name: str | None, report: RunReport | None) -> Mapping[int, str]:
    """By its line what failed in a variant; without a name, in any."""
    failures = [] if report is None else report.failures
    return {
        failure.line: sentence(failure.cause)
        for failure in failures
        if failure.line and (name is None or failure.variant in (name, None))
    }
