"""Bars of a share, of a level, and of parts: where the time of a step goes, in cells in proportion,
each part in its colour, or in its letter where there are no colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase, digits

from rich.cells import cell_len
from rich.text import Text

from gpulab.core.payloads import COPY, DATA, SYNC, UNMARKED, USEFUL

CELLS = 30
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
CATEGORIES: Mapping[str, tuple[str, str]] = {
    USEFUL: ("u", "cyan"),
    "other busy": ("b", "bright_blue"),
    "communication": ("n", "blue"),
    "copies": ("c", "magenta"),
    "alloc": ("a", "bright_red"),
    "data wait": ("d", "yellow"),
    "sync": ("s", "red"),
    "launch-bound": ("l", "bright_yellow"),
    "other": (".", "dim"),
    "waiting": ("w", "white"),
    "not running": ("o", "bright_white"),
    "preempted": ("p", "bright_magenta"),
}
"""Of every category its letter, since colours alone say nothing, and its style. Wherever it is
shown it has both.
"""
WORDS = {USEFUL: "computing", "preempted": "contention"}
"""Of categories that are called otherwise where they are shown."""
_PHASES = {USEFUL: USEFUL, DATA: "data wait", COPY: "copies", SYNC: "sync"}
"""Phases that are a category."""
OUTSIDE = "unmarked"
"""The name of the time outside every phase, which may be of any category."""
_OWN_STYLES = ("bright_cyan", "bright_blue", "bright_green", "white", "bright_white")


@dataclass(frozen=True)
class StepPart:
    """One part of a step: its share of the time, and how it is shown."""

    letter: str
    style: str
    words: str
    share: float

    @property
    def mark(self) -> Text:
        """Its letter, as in a bar."""
        return Text(self.letter, f"not bold {self.style}")

    @property
    def block(self) -> str:
        """The style of its letters in a bar: seen only where there are no colours."""
        shaded = "" if self.style == "dim" else f" on {self.style}"
        return f"not bold {self.style}{shaded}"

    @property
    def style_of_words(self) -> str:
        """The style of its words in a bar."""
        return "not bold" if self.style == "dim" else f"not bold black on {self.style}"


def categories(shares: Iterable[tuple[str, float]]) -> list[StepPart]:
    """The parts of a partition, in the order of the categories."""
    by_name = dict(shares)
    return [
        StepPart(*CATEGORIES[name], name, by_name[name]) for name in CATEGORIES if name in by_name
    ]


def phases(shares: Sequence[Mapping[str, float]]) -> list[list[StepPart]]:
    """The parts of the steps of several variants by their phases.

    One of the author's own gets a capital letter of its name, the same in every variant.
    """
    own = list(
        dict.fromkeys(
            name for by_name in shares for name in by_name if name not in (*_PHASES, UNMARKED)
        )
    )
    letters = _own_letters(own)
    order = sorted(_PHASES, key=lambda phase: list(CATEGORIES).index(_PHASES[phase]))
    looks = {name: CATEGORIES[_PHASES[name]] for name in order}
    looks[UNMARKED] = ("-", "dim")
    looks |= {
        name: (letters[index], _OWN_STYLES[index % len(_OWN_STYLES)])
        for index, name in enumerate(own)
    }
    return [
        [
            StepPart(*look, name or OUTSIDE, by_name[name])
            for name, look in looks.items()
            if name in by_name
        ]
        for by_name in shares
    ]


def bar(share: float, cells: int) -> str:
    """A bar of `share` of so many cells, in eighths of a cell; whatever there is of it is seen."""
    eighths = round(min(max(share, 0.0), 1.0) * cells * 8)
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return "█" * whole + _EIGHTHS[rest].strip()


def gauge(share: float, cells: int) -> str:
    """The same with the rest of its cells."""
    filled = bar(share, cells)
    return filled + "░" * (cells - len(filled))


def tall_levels(value: float, top: float, rows: int) -> list[str]:
    """The cells of a column from the lowest up, as high as the value is on a scale from 0 to
    `top`, which fills them all; the lowest is always seen.
    """
    eighths = max(1, round(min(value / top, 1.0) * rows * len(_LEVELS)))
    whole, rest = divmod(eighths, len(_LEVELS))
    return ["█"] * whole + [_LEVELS[rest - 1]] * bool(rest)


def parts_bar(
    parts: Sequence[StepPart], cells: int = CELLS, *, computing: str = "", with_words: bool = True
) -> Text:
    """A block a part, with its words or its share inside where they fit; where there are no
    colours, it is of the part's letters. `computing`: how that share is written.

    The ends of the parts are rounded, so that the whole is as long as it should be.
    """
    text, end, placed = Text(), 0.0, 0
    for part in parts:
        end += part.share
        count = round(end * cells) - placed
        placed += max(0, count)
        words = _words_inside(part, count, computing) if with_words else ""
        left = (count - cell_len(words)) // 2
        text.append(part.letter * left, part.block)
        text.append(words, part.style_of_words)
        text.append(part.letter * (count - left - cell_len(words)), part.block)
    return text


def _words_inside(part: StepPart, cells: int, computing: str) -> str:
    """Its name and share, or its share alone, where letters are left on both sides."""
    share = computing if part.words == USEFUL and computing else f"{part.share:.0%}"
    for words in (f" {WORDS.get(part.words, part.words)} {share} ", f" {share} "):
        if cell_len(words) + 2 <= cells:
            return words
    return ""


def _own_letters(names: Sequence[str]) -> list[str]:
    """A letter for each name: of its own the first that is free as a capital, else any that is
    free, else ?.
    """
    letters: list[str] = []
    for name in names:
        own = (letter for letter in name.upper() if letter in ascii_uppercase)
        letters.append(
            next(
                (letter for letter in (*own, *ascii_uppercase, *digits) if letter not in letters),
                "?",
            )
        )
    return letters
