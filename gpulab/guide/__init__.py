"""The manual that ships with the package: its pages, and the table of its words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpulab.draw.blocks import Block

_FOLDER = Path(__file__).parent


def pages() -> dict[str, str]:
    """The titles of the pages by their names, in the order in which they are read."""
    return {name: _title(path) for name, path in _paths().items()}


def page_text(name: str) -> str:
    """A page as it was written, in Markdown. KeyError where there is none of that name."""
    return _paths()[name].read_text(encoding="utf-8")


def page(name: str) -> Block:
    """A page for a terminal. KeyError where there is none of that name."""
    from gpulab.draw.blocks import Markdown

    return Markdown(page_text(name))


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
