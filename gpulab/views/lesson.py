"""A scenario to be read: the lesson, its variants, what its source claims, what can be changed."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.protocol.listing import ScenarioRow
from gpulab.protocol.text import one_line
from gpulab.scenario import Param
from gpulab.views.findings import sentence
from gpulab.views.text import Glyphs


def lesson(row: ScenarioRow, glyphs: Glyphs) -> RenderableType:
    """Paragraphs are filled to the width; lines that are set in stay as they are."""
    if row.error:
        hides = [Text(glyphs(sentence(row.hides)), "yellow")] if row.hides else []
        return Group(Text(glyphs(row.path), "bold"), Text(glyphs(row.error), "red"), *hides)
    title, _, rest = row.lesson.partition("\n")
    parts: list[RenderableType] = [Text(glyphs(title or row.title), "bold"), ""]
    for paragraph in filter(None, (part.strip("\n") for part in rest.split("\n\n"))):
        parts += [Text(glyphs.block(paragraph) if paragraph.startswith(" ") else glyphs(one_line(paragraph))), ""]
    if row.function:
        parts += [Text("a plain function: it is timed and profiled, and compared with nothing", "dim"), ""]
    else:
        parts += [variants_table(row, glyphs), ""]
    facts = Table.grid(padding=(0, 2, 0, 0))
    for name, value in _facts(row).items():
        if value:
            facts.add_row(Text(name, "dim"), Text(glyphs(value), overflow="fold"))
    return Group(*parts, facts)


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


def _assignments(params: Mapping[str, Param]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())
