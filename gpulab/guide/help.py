"""Help for what is shown, with the words of the manual that are in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpulab.core.statuses import BoundKind
from gpulab.draw.blocks import Block, Group, Table, Text, rows_table
from gpulab.guide import words

BESIDE = (
    ("theme", "T: dark, light (for projectors), contrast, the terminal's own, mono"),
    ("class", "gpulab --class NAME --share FOLDER: those who watch follow your screen"),
    ("page", "ctrl+p, then page: writes a result as HTML; or gpulab --run NAME --export page.html"),
)
"""What no line of keys names."""


def help_view(
    about: str,
    shown: str,
    keys: Sequence[tuple[str, str]],
    changed_by: str,
    beside: Sequence[tuple[str, str]] = (),
) -> Group:
    """Help for what is shown: its text, what there is `beside` it, the words of the manual that are
    in it, and the keys. Without such words all of them, below the keys.
    """
    every = words()
    here = {word: meaning for word, meaning in every.items() if _is_in(word, shown)}
    heading = "words on this screen" if here else "words"
    rows = [(word, meaning.replace("*", "")) for word, meaning in (here or every).items()]
    of_words: list[Block] = [Text(heading, "bold"), _table(rows), ""]
    of_keys: list[Block] = [
        Text("keys", "bold"),
        _table(keys),
        Text(changed_by, "dim"),
        "",
    ]
    first, second = (of_words, of_keys) if here else (of_keys, of_words)
    more = Text("more: gpulab --guide, gpulab --help", "dim")
    above: list[Block] = [Text(about), ""] if about else []
    if beside:
        above += [_table(beside), ""]
    return Group(*above, *first, *second, more)


def _table(rows: Iterable[tuple[str, str]]) -> Table:
    table = rows_table()
    table.add_column(no_wrap=True)
    for name, meaning in rows:
        table.add_row(Text(f"  {name}", "bold"), Text(meaning))
    return table


def _is_in(word: str, shown: str) -> bool:
    if word.startswith("?"):
        return any(f"{kind}?" in shown for kind in (*BoundKind, "-bound", "-resident"))
    return any(
        re.search(rf"(?<!\w){re.escape(part.strip())}s?(?!\w)", shown) for part in word.split(",")
    )
