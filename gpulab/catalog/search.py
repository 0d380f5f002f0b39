"""Scenarios by what one types: their names and titles, their lessons, and their code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpulab.catalog.catalog import Entry


def search(entries: Iterable[Entry], text: str) -> dict[str, str]:
    """By the names of the entries in which every word of the text is found: where (name, title, lesson, code)."""
    words = text.casefold().split()
    found = {}
    for entry in entries:
        if (place := _place(entry, words)) is not None:
            found[entry.name] = place
    return found


def by_name(found: Mapping[str, str]) -> list[str]:
    """Those whose names have it; all where none has."""
    return [name for name, place in found.items() if place == "name"] or [*found]


def _place(entry: Entry, words: list[str]) -> str | None:
    """The first place that, with those before it, has all of the words."""
    places = {"name": entry.name, "title": entry.title, "lesson": entry.text.lesson, "code": entry.source}
    read = ""
    for place, text in places.items():
        read += f"\n{text.casefold()}"
        if all(word in read for word in words):
            return place
    return None
