"""The manual that ships with the package: its pages, and one of them filled to the width."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType
from rich.markdown import Markdown

_FOLDER = Path(__file__).parent.parent / "guide"


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
