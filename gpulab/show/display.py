"""A report where Python shows one: as a text, a line, HTML in a notebook, and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from gpulab.core import text as safe
from gpulab.core.files import PICTURES, write_whole
from gpulab.core.limits import TEXT_LENGTH
from gpulab.core.units import seconds, times
from gpulab.draw.blocks import Block, Group
from gpulab.draw.figure import Figure
from gpulab.features import needed
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence_with_place
from gpulab.show import html as as_html
from gpulab.show.facts import subtitle, title
from gpulab.show.figures import figures_of
from gpulab.show.parts import Shown, Target, result
from gpulab.show.svg import file_of
from gpulab.show.terminal import plain_text
from gpulab.show.view import comparison_table, failure_causes, header, outcome_words, texts
from gpulab.stats.verdicts import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

    from gpulab.features.compare.report import ComparisonReport

_FORMS = ("html", "md", "text")
_COMMENT = "\n[//]: # (gpulab)\n"
"""At the end of Markdown, where nobody sees it: no HTML, which some readers show."""
MARKS = {
    ".html": b'<meta name="generator" content="gpulab ',
    ".md": _COMMENT.encode(),
}
"""By the endings of files that are written: what only such a file holds."""


def text(report: RunReport) -> str:
    """Return what ran, why what did not, and the table of the variants."""
    return safe.plain(plain_text(_short_result(report), 120)).rstrip()


def _short_result(report: RunReport) -> Group:
    table: list[Block] = ["", comparison_table(report)] if report.timed else []
    return Group(header(report), *texts(failure_causes(report)), *table)


def html(report: RunReport) -> str:
    """Return what the text says, for a notebook: no scripts, no style sheet."""
    return as_html.of(_short_result(report))


def one_line(report: RunReport) -> str:
    said = [outcome_words(report)]
    if not report.has_speedups and not report.smoke:
        said += [
            f"{variant.name} {seconds(variant.time_s.value)}"
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


def rendered(report: RunReport, form: str) -> str:
    """The run as a file of that form. ValueError where there is none."""
    if form not in _FORMS:
        raise ValueError(f"{form!r}: write one of {', '.join(_FORMS)}")
    if form == "text":  # all of it, as --verbose prints it
        return plain_text(result(Shown(report, Target.TERMINAL)), 100) + "\n"
    # they bring what colours code, which takes a while
    from gpulab.show import markdown, page

    return page.page(report) if form == "html" else markdown.document(report) + _COMMENT


def rendered_comparison(report: ComparisonReport, form: str) -> str:
    """As a page, or in Markdown."""
    from gpulab.show import markdown, page

    return (
        page.comparison_page(report) if form == "html" else markdown.comparison(report) + _COMMENT
    )


def figure(reports: Sequence[RunReport], path: str | PathLike[str] | None) -> Picture:
    """Drawn by matplotlib, and written to the path. ModuleNotFoundError says what to install;
    ValueError where the runs make no curve, or the path has another ending.
    """
    target = Path(path) if path is not None else None
    if target and target.suffix.lower() not in PICTURES:
        raise ValueError(f"{target}: the name ends in {', '.join(PICTURES)}")
    try:
        from gpulab.show.picture import drawn
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        message = "a plot needs matplotlib: pip install 'gpulab[plot]'"
        raise ModuleNotFoundError(message, name=error.name) from None
    picture = drawn(*_title_and_figures(reports))
    if target:
        write_whole(target, image(reports, target.suffix.lower().lstrip(".")))
    return picture


def as_file(reports: Sequence[RunReport], form: str) -> str | bytes:
    """What is written of a run in that form; of several the curve, which is a picture."""
    return image(reports, form) if f".{form}" in PICTURES else rendered(reports[0], form)


def image(reports: Sequence[RunReport], kind: str) -> bytes:
    """The picture of one run, or the curve of several, as a file of that kind: our own SVG, others
    by matplotlib.
    """
    title, figures = _title_and_figures(reports)
    if kind == "svg":
        return file_of(figures).encode()
    from gpulab.show.picture import drawn, encoded

    return encoded(drawn(title, figures), kind)


def _title_and_figures(reports: Sequence[RunReport]) -> tuple[str, list[Figure]]:
    """Return what ran on which device, and its figures."""
    if not reports:
        raise ValueError("a curve is of several runs of one scenario")
    first = reports[0]
    if len(reports) == 1:
        figures = figures_of(first)
    else:
        figures = [needed("sweeps.figure").curves_figure(reports)]
    return f"{first.scenario}: {title(first)}\n{subtitle(first)}", figures
