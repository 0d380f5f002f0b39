"""A scenario to be read: the lesson, its variants, what its source claims, what can be changed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.model.listing import Row
from gpulab.views.text import Glyphs


def lesson(row: Row, glyphs: Glyphs) -> RenderableType:
    """Paragraphs are filled to the width; lines that are set in stay as they are."""
    if row.error:
        return Group(Text(glyphs(row.path), "bold"), Text(glyphs(row.error), "red"))
    title, _, rest = row.lesson.partition("\n")
    parts: list[RenderableType] = [Text(glyphs(title or row.title), "bold"), ""]
    for paragraph in filter(None, (part.strip("\n") for part in rest.split("\n\n"))):
        filled = paragraph if paragraph.startswith(" ") else " ".join(paragraph.split())
        parts += [Text(glyphs(filled)), ""]
    variants = Table.grid(padding=(0, 2, 0, 0))
    for name, summary in zip(row.variants, row.summaries, strict=True):
        variants.add_row(Text(glyphs(name), "bold"), Text(glyphs(summary)))
    parts += [variants, ""]
    facts = {
        "claim": row.claim,
        "parameters": " ".join(f"{name}={value}" for name, value in row.params.items()),
        "on a CPU": " ".join(f"{name}={value}" for name, value in row.cpu.items()),
        "sweep": ", ".join(f"{name}={','.join(map(str, values))}" for name, values in row.sweep.items()),
        "lacking here": row.missing or "",
        "file": row.path,
    }
    known = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts.items():
        if value:
            known.add_row(Text(name, "dim"), Text(glyphs(value), overflow="fold"))
    return Group(*parts, known)
