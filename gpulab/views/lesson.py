"""A scenario to be read: the lesson, its variants, what its source claims, what can be changed."""

from __future__ import annotations

from collections.abc import Mapping

from markdown_it import MarkdownIt
from rich.console import Group, RenderableType
from rich.constrain import Constrain
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from gpulab.protocol.listing import ScenarioRow
from gpulab.report.course import course_lesson
from gpulab.scenario import Param
from gpulab.views.findings import sentence
from gpulab.views.pages.course import lesson_questions
from gpulab.views.text import Glyphs

_WIDEST = 78
"""Cells of a line that is read with ease."""


def lesson(
    row: ScenarioRow, glyphs: Glyphs, *, chosen: Mapping[str, str] | None = None, hides_claim: bool = False
) -> RenderableType:
    """The text as Markdown. `chosen`: what the user set for its runs; `hides_claim`: a guess waits for its answer."""
    if row.error:
        hides = [Text(glyphs(sentence(row.hides)), "yellow")] if row.hides else []
        return Group(Text(glyphs(row.path), "bold"), Text(glyphs(row.error), "red"), *hides)
    title, _, rest = row.lesson.partition("\n")
    parts: list[RenderableType] = [Text(glyphs(title or row.title), "bold"), ""]
    if rest.strip():
        parts += [_markdown(glyphs.block(rest)), ""]
    if row.function:
        parts += [Text("a plain function: it is timed and profiled, and compared with nothing", "dim"), ""]
    else:
        parts += [variants_table(row, glyphs), ""]
    facts = Table.grid(padding=(0, 2, 0, 0))
    listed = _facts(row) | {"claim": "hidden until the verdict stands" if hides_claim and row.claim else row.claim}
    listed["chosen"] = _assignments(chosen or {})
    for name, value in listed.items():
        if value:
            facts.add_row(Text(name, "dim"), Text(glyphs(value), overflow="fold"))
    asked = course_lesson(row.name) if not row.own else None
    questions: list[RenderableType] = ["", *lesson_questions(asked, glyphs)] if asked else []
    return Group(Constrain(Group(*parts), _WIDEST), facts, Constrain(Group(*questions), _WIDEST))


def _markdown(text: str) -> Markdown:
    """Tags are text: a lesson may say <int>."""
    markdown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    markdown.parsed = MarkdownIt("commonmark", {"html": False}).enable("table").parse(text)
    return markdown


def variants_table(row: ScenarioRow, glyphs: Glyphs) -> Table:
    variants = Table.grid(padding=(0, 2, 0, 0))
    for name, summary in zip(row.variants, row.summaries, strict=True):
        variants.add_row(Text(glyphs(name), "bold"), Text(glyphs(summary)))
    return variants


def _facts(row: ScenarioRow) -> dict[str, str]:
    return {
        "claim": row.claim,
        "parameters": _assignments(row.params),
        "on a CPU": _assignments(row.cpu),
        "sweep": ", ".join(f"{name}={','.join(map(str, values))}" for name, values in row.sweep.items()),
        "missing here": sentence(row.missing) if row.missing else "",
        "file": row.path,
        "note": sentence(row.hides) if row.hides else "",
    }


def _assignments(params: Mapping[str, Param] | Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())
