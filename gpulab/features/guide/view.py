"""The manual that ships with the package: its pages, and the table of its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from gpulab.draw.table import rows_table

_FOLDER = Path(__file__).parents[2] / "guide"


def pages() -> dict[str, str]:
    """The titles of the pages by their names, in the order in which they are read."""
    return {name: _title(path) for name, path in _paths().items()}


def page_text(name: str) -> str:
    """A page as it was written, in Markdown. KeyError where there is none of that name."""
    return _paths()[name].read_text(encoding="utf-8")


def page(name: str) -> RenderableType:
    """A page for a terminal. KeyError where there is none of that name."""
    return Markdown(page_text(name), hyperlinks=False)


def _paths() -> dict[str, Path]:
    return {path.stem.partition("-")[2]: path for path in sorted(_FOLDER.glob("*.md"))}


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").rstrip()


PAGE = "words"


def words() -> dict[str, str]:
    """Meanings by word, in the order of the manual."""
    rows = (
        line.strip("| ").split("|") for line in page_text(PAGE).splitlines() if line.startswith("|")
    )
    pairs = {row[0].strip(): row[1].strip() for row in rows if len(row) == 2}
    return {
        word: meaning
        for word, meaning in pairs.items()
        if word != "word" and not word.startswith("-")
    }


def help_view(about: str, shown: str, keys: Sequence[tuple[str, str]], changed_by: str) -> Group:
    """What one looks at; the words of the manual that stand in what is shown; keys; without such
    words all of them.
    """
    every = words()
    here = {word: meaning for word, meaning in every.items() if _stands(word, shown)}
    listed = _table([(word, meaning.replace("*", "")) for word, meaning in (here or every).items()])
    of_words: list[RenderableType] = [
        Text("words on this screen" if here else "words", "bold"),
        listed,
        "",
    ]
    of_keys: list[RenderableType] = [
        Text("keys", "bold"),
        _table(keys),
        Text(changed_by, "dim"),
        "",
    ]
    parts = [*of_words, *of_keys] if here else [*of_keys, *of_words]
    first: list[RenderableType] = [Text(about), ""] if about else []
    return Group(*first, *parts, Text("more: gpulab --guide, gpulab --help", "dim"))


def _table(rows: Iterable[tuple[str, str]]) -> Table:
    table = rows_table()
    table.add_column(no_wrap=True)
    for name, meaning in rows:
        table.add_row(Text(f"  {name}", "bold"), Text(meaning))
    return table


def _stands(word: str, shown: str) -> bool:
    return any(part.strip() in shown for part in word.split(","))
