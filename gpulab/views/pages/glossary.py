"""The words of the screen with what they mean: a table of the manual, which the help reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
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


def help_view(about: str, shown: str, keys: Sequence[tuple[str, str]], changed_by: str, glyphs: Glyphs) -> Group:
    """What one looks at; the words of the manual that stand in what is shown; keys; without such words all of them."""
    every = words()
    here = {word: meaning for word, meaning in every.items() if _stands(word, shown)}
    listed = _table([(word, meaning.replace("*", "")) for word, meaning in (here or every).items()], glyphs)
    of_words: list[RenderableType] = [Text("words on this screen" if here else "words", "bold"), listed, ""]
    of_keys: list[RenderableType] = [Text("keys", "bold"), _table(keys, glyphs), Text(glyphs(changed_by), "dim"), ""]
    parts = [*of_words, *of_keys] if here else [*of_keys, *of_words]
    first: list[RenderableType] = [Text(glyphs(about)), ""] if about else []
    return Group(*first, *parts, Text("more: gpulab --guide, gpulab --help", "dim"))


def _table(rows: Iterable[tuple[str, str]], glyphs: Glyphs) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    for name, meaning in rows:
        table.add_row(Text(glyphs(f"  {name}"), "bold"), Text(glyphs(meaning)))
    return table


def _stands(word: str, shown: str) -> bool:
    return any(part.strip() in shown for part in word.split(","))
