"""Scenarios by what one types: their names and titles, their lessons, and their code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpulab.catalog.catalog import Entry

_PLACES = ("name", "title", "lesson", "code")


def search(entries: Iterable[Entry], text: str) -> dict[str, str]:
    """By the names of the entries in which every word of the text is found: where (name, title, lesson, code)."""
    words = text.casefold().split()
    found = {}
    for entry in entries:
        if (place := _place(entry, words)) is not None:
            found[entry.name] = place
    return found


def nearest(found: Mapping[str, str]) -> list[str]:
    """Those that were found in the first of the places in which any was."""
    places = {place: [name for name, at in found.items() if at == place] for place in _PLACES}
    return next(filter(None, places.values()), [])


def _place(entry: Entry, words: list[str]) -> str | None:
    """The first place that, with those before it, has all of the words."""
    texts = entry.name, entry.title, entry.text.lesson, entry.source
    read = ""
    for place, text in zip(_PLACES, texts, strict=True):
        read += f"\n{text.casefold()}"
        if all(word in read for word in words):
            return place
    return None
