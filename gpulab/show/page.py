"""A run, or a comparison of runs, as one page of HTML that opens anywhere: it asks for no other
file, and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpulab.commit import version
from gpulab.draw.blocks import Block, Group
from gpulab.show import html
from gpulab.show.facts import answer, subtitle, title
from gpulab.show.markup import Html, element, style_sheet
from gpulab.show.parts import Shown, Target, parts_of
from gpulab.show.request import request_of

if TYPE_CHECKING:
    from gpulab.features.compare.report import ComparisonReport
    from gpulab.report.report import RunReport

_NO_REQUESTS = "default-src 'none'; style-src 'unsafe-inline'"


def page(report: RunReport) -> str:
    """The whole file of a run."""
    header = [
        element("p", f"gpulab · {report.scenario}", class_="dim"),
        element("h1", title(report)),
        element("p", subtitle(report), class_="dim"),
        *_answer(report),
    ]
    made_by = f"Measured and written by gpulab {report.environment.get('gpulab') or ''}"
    request, problem = request_of(report)
    parts = parts_of(Shown(report, Target.PAGE, request=request, problem=problem))
    return _framed(f"{report.scenario}: {title(report)}", header, parts, made_by)


def comparison_page(report: ComparisonReport) -> str:
    """The whole file of a comparison of saved runs."""
    from gpulab.features.compare.view import comparison_view

    heading = f"{report.before} → {report.after}"
    header = [element("p", "gpulab · comparison", class_="dim"), element("h1", heading)]
    parts = [("result", [comparison_view(report, verbose=True, with_bars=False)])]
    return _framed(heading, header, parts, f"Compared and written by gpulab {version()}")


def _framed(
    heading: str, header: Iterable[Html], parts: Iterable[tuple[str, list[Block]]], footer: str
) -> str:
    sections = [
        element("section", element("h2", name[:1].upper() + name[1:]), html.of(Group(*blocks)))
        for name, blocks in parts
    ]
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_NO_REQUESTS),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"gpulab {version()}"),
        element("title", heading),
        element("style", style_sheet("page.css"), style_sheet("svg.css")),
    ]
    body = element(
        "body",
        element("header", *header),
        element("main", *sections),
        element("footer", element("p", footer)),
    )
    return f"<!DOCTYPE html>\n{element('html', element('head', *head), body, lang='en')}\n"


def _answer(report: RunReport) -> Iterator[Html]:
    """Yield what came out, before all else."""
    if report.get("program") is not None:
        return
    found = answer(report)
    strong = element("strong", found.short, class_=html.class_of(found.style))
    yield element("p", strong, element("span", found.words), class_="answer")
    if found.why:
        yield element("p", found.why, class_="dim")
