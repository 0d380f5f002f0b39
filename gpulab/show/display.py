"""A report where Python shows one: as a text, a line, HTML in a notebook, and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from gpulab.core import text as safe
from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.units import seconds, times
from gpulab.draw.blocks import Block, Text
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence_with_place
from gpulab.show.html import Html, element, joined
from gpulab.show.results import header
from gpulab.show.terminal import plain_text
from gpulab.show.view import comparison_table, failure_causes, outcome_words
from gpulab.stats.verdicts import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 120
_CELL = "padding:2px 12px 2px 0;border:0;text-align:{align};white-space:nowrap"
_BAR_PX = 160


def text(report: RunReport) -> str:
    """What ran, why what did not, and the table of the variants."""
    parts = [_rendered(header(report)), *_reasons(report)]
    if report.timed:
        parts += ["", _rendered(comparison_table(report))]
    return "\n".join(parts).rstrip()


def one_line(report: RunReport) -> str:
    said = [outcome_words(report)]
    if not report.has_speedups and not report.smoke:
        said += [
            f"{variant.name} {seconds(variant.time_s.median)}"
            for variant in report.variants
            if variant.time_s
        ]
    for comparison in report.comparisons:
        if comparison.against == report.baseline and report.has_speedups:
            speedup = f" {times(comparison.speedup)}" if comparison.speedup else ""
            said.append(f"{comparison.variant}{speedup} {shown(comparison).words}")
    if report.reason:
        said.append(sentence_with_place(report.reason))
    line = safe.one_line(f"RunReport {report.scenario}: {', '.join(said)}")
    return f"<{safe.cut(line, TEXT_LENGTH)}>"


def html(report: RunReport) -> str:
    """The same as a table with a bar for each time: no scripts, no style sheet."""
    heading, *facts = _rendered(header(report)).split("\n")
    lines = [element("div", element("b", safe.one_line(heading)))]
    lines += [element("div", safe.one_line(line)) for line in (*facts, *_reasons(report))]
    if report.timed:
        lines.append(element("table", "\n", *_rows(report), style="border:0"))
    return "\n".join(lines)


def rendered(report: RunReport, form: str) -> str:
    """The run as a file of that form. ValueError where there is none."""
    from gpulab.show.forms import rendered

    return rendered(report, form)


def figure(reports: Sequence[RunReport], path: str | PathLike[str] | None) -> Figure:
    """Drawn, and written to the path. ModuleNotFoundError says what to install."""
    try:
        from gpulab.show.picture import plotted
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        message = "a plot needs matplotlib: pip install 'gpulab[plot]'"
        raise ModuleNotFoundError(message, name=error.name) from None
    return plotted(reports, path)


def _rows(report: RunReport) -> Iterator[Html]:
    table = comparison_table(report)
    aligned = ["right" if column.justify == "right" else "left" for column in table.columns]
    names = [str(column.words) for column in table.columns]
    heads = [_cell("th", *head) for head in zip(names, aligned, strict=True)]
    yield _row(heads, element("th"))
    medians = {variant.name: time.median for variant, time in report.timed}
    longest = max(medians.values())
    for row in table.rows:
        texts = [_rendered(cell) for cell in row]
        cells = [_cell("td", *one) for one in zip(texts, aligned, strict=True)]
        median = medians.get(str(row[0]))
        bar = _bar(median / longest) if median is not None and longest else Html("")
        yield _row(cells, element("td", bar))


def _row(cells: Sequence[Html], bar: Html) -> Html:
    first, *others = cells
    return joined([element("tr", first, bar, *others), "\n"])


def _bar(share: float) -> Html:
    bar = element("div", style=f"width:{share:.1%};height:10px;background:#5b8fd6")
    return element("div", bar, style=f"width:{_BAR_PX}px")


def _cell(kind: str, content: str, align: str) -> Html:
    return element(kind, safe.one_line(content), style=_CELL.format(align=align))


def _reasons(report: RunReport) -> list[str]:
    return [safe.plain(line) for line, _ in failure_causes(report)]


def _rendered(content: Block) -> str:
    """Plain text, of which nothing moves the cursor."""
    return safe.plain(plain_text(content, _WIDTH, soft_wrap=isinstance(content, (str, Text))))
