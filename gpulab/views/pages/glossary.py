"""The words of the screen with what they mean: a table of the manual, which the help reads."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.views.guide import page_text
from gpulab.views.text import Glyphs

PAGE = "words"


def words() -> dict[str, str]:
    """Meanings by word, in the order of the manual."""
    rows = (line.strip("| ").split("|") for line in page_text(PAGE).splitlines() if line.startswith("|"))
    pairs = {row[0].strip(): row[1].strip() for row in rows if len(row) == 2}
    return {word: meaning for word, meaning in pairs.items() if word != "word" and not word.startswith("-")}


def help_view(keys: Iterable[tuple[str, str]], shown: str, glyphs: Glyphs) -> RenderableType:
    """Keys with what they do; and of the words of the manual those that stand in what is shown, or all."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True, style="bold")
    table.add_row("keys", "")
    for key, description in keys:
        table.add_row(Text(glyphs(f"  {key}")), Text(glyphs(description)))
    every = words()
    here = {word: meaning for word, meaning in every.items() if _stands(word, shown)}
    table.add_row("", "")
    table.add_row("words", "on this screen" if here else "")
    for word, meaning in (here or every).items():
        table.add_row(Text(glyphs(f"  {word}")), Text(glyphs(meaning.replace("*", ""))))
    table.add_row("", "")
    table.add_row("more", Text("gpulab --guide, gpulab --help", "dim"))
    return table


def _stands(word: str, shown: str) -> bool:
    return any(part.strip() in shown for part in word.split(","))
