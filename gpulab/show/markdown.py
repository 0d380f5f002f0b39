"""A run as Markdown: what `--markdown` prints, and the report of a pull request or of a lab."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpulab.catalog.kernels import kernels_of
from gpulab.core.run_file import RunFileError
from gpulab.core.text import fenced, markdown_text, plain
from gpulab.draw.blocks import Block, Group, Table, Text
from gpulab.features import present
from gpulab.features.checks.view import checks, grades
from gpulab.features.roofline.view import limits
from gpulab.report.report import RunReport
from gpulab.show.facts import answer, command, facts, source_of, subtitle, title
from gpulab.show.raw_times import RAW_NOTE, markdown, raw_table
from gpulab.show.record import Record
from gpulab.show.results import header
from gpulab.show.view import (
    Line,
    bounds,
    comparison_table,
    failure_causes,
    note_lines,
    required,
)

if TYPE_CHECKING:
    from gpulab.features.code.view import MarkedCode


def summary(report: RunReport) -> list[str]:
    """The comparison and what weakens it."""
    heading, *said = header(report).plain.split("\n")
    lines = [f"**{markdown_text(heading)}**", "", *map(markdown_text, said), ""]
    return [*lines, *_comparison(report)]


def _comparison(report: RunReport) -> Iterator[str]:
    for line, _ in failure_causes(report):
        yield from (markdown_text(line), "")
    for line, _ in required(report):
        yield from (markdown_text(line), "")
    if report.timed:
        yield from (*markdown(comparison_table(report)), "")
        yield from _bullets([*bounds(report), *note_lines(report)])


def raw_times(report: RunReport) -> list[str]:
    """RunFileError where the run file is gone."""
    return [*markdown(raw_table(report)), "", RAW_NOTE, ""] if report.timed else []


def document(record: Record) -> str:
    """The whole file."""
    report = record.report
    found = answer(record)
    lines = [f"# {markdown_text(title(report))}", "", markdown_text(subtitle(report)), ""]
    lines += [f"**{markdown_text(found.short)}** {markdown_text(found.words)}".rstrip(), ""]
    lines += [*_bullets(grades(report)), *_comparison(report)]
    lines += _section("Limits, and what to do", _limits(report))
    lines += _section("Code", _code(record))
    lines += _section("Trust", _of(checks(report)))
    lines += _section("Raw times", _raw_times(report))
    lines += _section("Environment", _environment(record))
    return "\n".join(lines).rstrip() + "\n"


def _section(heading: str, lines: Iterable[str]) -> list[str]:
    listed = list(lines)
    while listed and not listed[-1]:
        listed.pop()
    return [f"## {heading}", "", *listed, ""] if listed else []


def _bullets(lines: Iterable[Line]) -> list[str]:
    listed = [f"- {markdown_text(line)}" for line, _ in lines]
    return [*listed, ""] if listed else []


def _of(content: Block | None) -> Iterator[str]:
    """Tables, and the texts around them."""
    match content:
        case Group():
            for part in content:
                yield from _of(part)
        case Table():
            yield from (*markdown(content), "")
        case Text() if content.plain.strip():
            yield from (markdown_text(content.plain), "")


def _limits(report: RunReport) -> Iterator[str]:
    for variant in report.variants:
        limited = limits([variant]).plain
        yield from (f"- {markdown_text(line)}" for line in limited.splitlines() if line.strip())


def _raw_times(report: RunReport) -> list[str]:
    try:
        return raw_times(report)
    except RunFileError as error:
        return [markdown_text(str(error))]


def _code(record: Record) -> Iterator[str]:
    report, source = record.report, source_of(record.request)
    view = present("code.view")
    if view is None:
        return
    names = tuple(variant.name for variant in report.variants)
    marked = view.marked_code(source, names, report, kernels_of(source, names, report.params))
    lines: list[str] = []
    for each in marked:
        for block in (*each.functions, *each.kernels):
            lines += [*_diff(block), ""]
    if lines:
        yield from (*fenced(lines[:-1], "diff"), "", markdown_text(view.SIGNS))


def _diff(block: MarkedCode) -> Iterator[str]:
    for _, sign, line in block.lines:
        yield f"{sign} {plain(line.plain)}".rstrip()


def _environment(record: Record) -> Iterator[str]:
    for name, value in facts(record):
        if value:
            yield f"- {markdown_text(name)}: {markdown_text(value)}"
    if record.request:
        yield ""
        yield from fenced([command(record.request, record.report)], "sh")
