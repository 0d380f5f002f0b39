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
    meanings = {}
    for line in page_text(PAGE).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 2 and cells[0] != "word":
            meanings[cells[0]] = cells[1]
    return meanings


def help_view(about: str, shown: str, keys: Sequence[tuple[str, str]], changed_by: str) -> Group:
    """Help for what is shown: its text, the words of the manual that are in it, and the keys.
    Without such words all of them, below the keys.
    """
    every = words()
    here = {word: meaning for word, meaning in every.items() if _is_in(word, shown)}
    heading = "words on this screen" if here else "words"
    rows = [(word, meaning.replace("*", "")) for word, meaning in (here or every).items()]
    of_words: list[RenderableType] = [Text(heading, "bold"), _table(rows), ""]
    of_keys: list[RenderableType] = [
        Text("keys", "bold"),
        _table(keys),
        Text(changed_by, "dim"),
        "",
    ]
    first, second = (of_words, of_keys) if here else (of_keys, of_words)
    more = Text("more: gpulab --guide, gpulab --help", "dim")
    if about:
        return Group(Text(about), "", *first, *second, more)
    return Group(*first, *second, more)


def _table(rows: Iterable[tuple[str, str]]) -> Table:
    table = rows_table()
    table.add_column(no_wrap=True)
    for name, meaning in rows:
        table.add_row(Text(f"  {name}", "bold"), Text(meaning))
    return table


def _is_in(word: str, shown: str) -> bool:
    return any(part.strip() in shown for part in word.split(","))
