"""A run as one page of HTML that opens anywhere: it asks for no other file, and runs no script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.catalog.kernels import kernels_of
from gpulab.catalog.reader import read_text
from gpulab.catalog.source import UnreadableError
from gpulab.commit import version
from gpulab.core.jobs import RunRequest, ScenarioFile, subject_of
from gpulab.draw.blocks import Markdown, Text
from gpulab.features import present, views
from gpulab.features.checks.view import checks, grades
from gpulab.features.roofline.ceilings_view import ceiling_table
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import limits, roofline_view
from gpulab.report.feature import Section
from gpulab.report.report import RunReport
from gpulab.show import html
from gpulab.show.facts import answer, command, facts, source_of, subtitle, title
from gpulab.show.html import Html, element, joined
from gpulab.show.parts import part, tables_of
from gpulab.show.record import Record
from gpulab.show.results import failures, lesson_figure, trust_lines
from gpulab.show.view import Line, comparison_table, failure_causes, note_lines, required

if TYPE_CHECKING:
    from gpulab.features.code.view import MarkedCode

_STYLE = Path(__file__).with_name("page.css")
_NO_REQUESTS = "default-src 'none'; style-src 'unsafe-inline'"
_COLUMNS, _ROWS = 100, 32
"""Of the roofline, which is letters: the plot above its table."""


def page(record: Record) -> str:
    """The whole file."""
    report = record.report
    heading = f"{report.scenario}: {title(report)}"
    made_by = f"Measured and written by gpulab {report.environment.get('gpulab') or ''}"
    return framed(heading, _header(report), _sections(record), made_by)


def framed(
    heading: str,
    header: Iterable[Html],
    sections: Iterable[tuple[str, Iterable[Html]]],
    footer: str,
) -> str:
    """A whole file; sections in which there is nothing are left out."""
    written = [
        element("section", element("h2", name), *parts)
        for name, content in sections
        if (parts := [each for each in content if each])
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_NO_REQUESTS),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"gpulab {version()}"),
        element("title", heading),
        element("style", _style()),
    ]
    body = element(
        "body",
        element("header", *header),
        element("main", *written),
        element("footer", element("p", footer)),
    )
    return f"<!DOCTYPE html>\n{element('html', element('head', *head), body, lang='en')}\n"


@cache
def _style() -> Html:
    return Html(_STYLE.read_text(encoding="utf-8"))


def _header(report: RunReport) -> Iterator[Html]:
    yield element("p", f"gpulab · {report.scenario}", class_="dim")
    yield element("h1", title(report))
    yield element("p", subtitle(report), class_="dim")


def _sections(record: Record) -> Iterator[tuple[str, Iterator[Html]]]:
    report = record.report
    yield "Result", _result(record)
    yield "Lesson", _lesson(record.request)
    yield "Code", _code(record)
    yield "Where the time goes", _views(report, Section.TIME, Section.OPERATIONS)
    yield "Roofline and limits", _roofline(report)
    yield "Findings", _findings(report)
    yield "Memory, kernels, tuning", _views(report, Section.RESOURCES, Section.JOBS)
    yield "Trust", _trust(report)
    yield "Telemetry", _views(report, Section.ALONE)
    yield "Environment", _environment(record)


def _views(report: RunReport, *sections: Section) -> Iterator[Html]:
    return (html.of(each) for each in tables_of(report, views(*sections)))


def _source_of(words: str) -> Html:
    """Where the numbers of a figure are from."""
    return element("p", words, class_="source")


def _lines(lines: Sequence[Line]) -> Iterator[Html]:
    for words, style in lines:
        yield element("p", words, class_=html.class_of(style))


def _result(record: Record) -> Iterator[Html]:
    """The verdict first, then times and the table of all comparisons."""
    report = record.report
    yield from _lines(failure_causes(report))
    if report.get("program") is not None:
        yield from _views(report, Section.PROGRAM, Section.RANKS)
        return
    yield from _answer(record)
    yield from _lines(required(report))
    yield html.of(lesson_figure(report))
    yield from _views(report, Section.TRIED)
    if report.compares and report.timed:
        yield html.of(comparison_table(report))
    failed = failures(report)
    if failed.plain.strip():
        yield element("pre", element("code", html.spans(failed)))


def _answer(record: Record) -> Iterator[Html]:
    found = answer(record)
    strong = element("strong", found.short, class_=html.class_of(found.style))
    yield element("p", strong, element("span", found.words), class_="answer")
    if found.why:
        yield element("p", found.why, class_="dim")
    yield from _lines(grades(record.report))


def _lesson(request: RunRequest | None) -> Iterator[Html]:
    subject = subject_of(request.job) if request else None
    if not isinstance(subject, ScenarioFile):
        return
    try:
        text = subject.lesson or read_text(subject.judge or subject.source).lesson
    except UnreadableError:
        return
    rest = text.partition("\n")[2].strip()
    if rest:
        yield element("div", html.markdown(Markdown(rest)), class_="lesson")
    if subject.claim:
        yield element("p", f"Claim: {subject.claim}")


def _code(record: Record) -> Iterator[Html]:
    """Each variant with the lines that differ from the baseline."""
    report = record.report
    source = source_of(record.request)
    if not source:
        if record.problem:
            yield element("p", f"no source: {record.problem}", class_="dim")
        return
    view = present("code.view")
    if view is None:
        return
    names = tuple(variant.name for variant in report.variants)
    marked = view.marked_code(source, names, report, kernels_of(source, names, report.params))
    kernels_above: set[int] = set()
    for each in marked:
        words, style = view.measured(each.name, report)
        name = f"{each.name} (baseline)" if each.is_baseline else each.name
        aside = element("span", words, class_=html.class_of(style))
        yield element("h3", name, " ", aside)
        for block in each.functions:
            yield _block(block, view.FAILED_HERE)
        if each.above:
            yield element("p", f"{', '.join(each.above)}: above", class_="dim")
        for block in each.kernels:
            known = block.code.first in kernels_above
            yield element("p", f"{block.caption}{': above' * known}", class_="dim")
            if not known:
                kernels_above.add(block.code.first)
                yield _block(block, view.FAILED_HERE)
    if len(marked) > 1:
        yield _source_of(f"{view.SIGNS}; lines that all variants share are left out")


_SIGNS = {"+": "ins", "-": "del"}


def _block(block: MarkedCode, failed_here: str) -> Html:
    """Numbers and signs are drawn by the style sheet: what is copied is code."""
    lines = []
    for number, sign, line in block.lines:
        code = html.spans(line)
        if number in block.failed:
            message = f"{failed_here}{block.failed[number]}"
            code = joined([code, element("span", message, class_="red bold")])
        name = _SIGNS.get(sign, "span")
        lines.append(element(name, code, "\n", class_="line", data_n=f"{number:>4} {sign}"))
    return element("pre", element("code", *lines))


def _roofline(report: RunReport) -> Iterator[Html]:
    roofline = roofline_of(report)
    if roofline is not None:
        yield html.of(roofline_view(roofline, width=_COLUMNS, height=_ROWS))
        yield _source_of(
            "Rates are measured, of declared work; roofs are measured on this device where no "
            "other source is named."
        )
    for variant in report.variants:
        yield html.of(limits([variant]))


def _findings(report: RunReport) -> Iterator[Html]:
    for found in part("findings.view:advice", report.variants) or ():
        yield element("h3", html.spans(found)) if isinstance(found, Text) else html.of(found)


def _trust(report: RunReport) -> Iterator[Html]:
    if report.get("program") is not None:
        yield from _lines(note_lines(report))
        return
    yield from _lines(trust_lines(report))
    yield html.of(checks(report))


def _environment(record: Record) -> Iterator[Html]:
    report = record.report
    rows = [
        element("tr", element("th", name, scope="row"), element("td", value))
        for name, value in facts(record)
        if value
    ]
    yield element("div", element("table", element("tbody", *rows)), class_="wide")
    if record.request:
        yield element("h3", "Run it again")
        yield element("pre", element("code", command(record.request, report)))
    if report.ceilings and report.ceilings.ceilings:
        summary = element("summary", "Ceilings of this device, and where each is from")
        table = html.of(ceiling_table(report.ceilings.ceilings))
        unfolded = None if report.variants else "open"
        yield element("details", summary, table, open=unfolded)
