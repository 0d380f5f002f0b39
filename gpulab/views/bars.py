"""Bars of letters: where the time of a step goes, in cells in proportion, each with the letter of its part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase, digits

from rich.text import Text

from gpulab.protocol.partition import COPY, DATA, SYNC, UNMARKED, USEFUL

CELLS = 30
_CATEGORIES = {
    USEFUL: ("u", "green", USEFUL),
    "other busy": ("b", "cyan", "other busy"),
    "communication": ("n", "blue", "communication"),
    "copies": ("c", "magenta", "copies"),
    "alloc": ("a", "red", "alloc"),
    "data wait": ("d", "yellow", "data wait"),
    "sync": ("s", "red", "sync"),
    "launch-bound": ("l", "yellow", "launch-bound"),
    "other": (".", "dim", "other"),
    "preempted": ("p", "red", "off the CPU (preempted, or a wait that no phase names)"),
}
"""Of every category its letter, since colours alone say nothing; its style and its words."""
_PHASES = {USEFUL: USEFUL, DATA: "data wait", COPY: "copies", SYNC: "sync", UNMARKED: "other"}
OUTSIDE = "unmarked"
"""The name of the time outside every phase."""
_OWN_STYLES = ("cyan", "blue", "magenta", "green", "yellow")


@dataclass(frozen=True)
class Part:
    """One part of a step: its share of the time, and how it is shown."""

    letter: str
    style: str
    words: str
    share: float


def categories(shares: Iterable[tuple[str, float]]) -> list[Part]:
    """The parts of a partition, in the order of the categories."""
    by_name = dict(shares)
    return [Part(*_CATEGORIES[name], by_name[name]) for name in _CATEGORIES if name in by_name]


def phases(shares: Iterable[tuple[str, float]]) -> list[Part]:
    """The parts of a step by its phases; one of the author's own gets a capital letter of its name."""
    order = list(_CATEGORIES)
    by_name = dict(shares)
    own = [name for name in by_name if name not in _PHASES]
    parts = []
    for name in sorted(set(by_name) & set(_PHASES), key=lambda name: order.index(_PHASES[name])):
        letter, style, _ = _CATEGORIES[_PHASES[name]]
        parts.append(Part(letter, style, name or OUTSIDE, by_name[name]))
    letters = _own_letters(own)
    for index, name in enumerate(own):
        parts.append(Part(letters[index], _OWN_STYLES[index % len(_OWN_STYLES)], name, by_name[name]))
    return parts


def bar(parts: Sequence[Part], cells: int = CELLS) -> Text:
    """The ends of the parts are rounded, so that the whole is as long as it should be."""
    text, end, placed = Text(), 0.0, 0
    for part in parts:
        end += part.share
        count = round(end * cells) - placed
        placed += count
        text.append(part.letter * count, f"not bold {part.style}")
    return text


def legend(bars: Iterable[tuple[Text, Sequence[Part]]]) -> str:
    """Every letter that a bar shows, with its words."""
    words = {part.letter: part.words for text, parts in bars for part in parts if part.letter in text.plain}
    order = [letter for letter, _, _ in _CATEGORIES.values()]
    letters = sorted(words, key=lambda letter: order.index(letter) if letter in order else len(order))
    return ", ".join(f"{letter} {words[letter]}" for letter in letters)


def _own_letters(names: Sequence[str]) -> list[str]:
    """A letter for each name: of its own the first that is free as a capital, else any that is free, else ?."""
    letters: list[str] = []
    for name in names:
        own = (letter for letter in name.upper() if letter in ascii_uppercase)
        letters.append(next((letter for letter in (*own, *ascii_uppercase, *digits) if letter not in letters), "?"))
    return letters
