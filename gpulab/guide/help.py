"""Help for what is shown, with the words of the manual that are in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from gpulab.draw.blocks import Block, Group, Table, Text, rows_table
from gpulab.guide import words


def help_view(about: str, shown: str, keys: Sequence[tuple[str, str]], changed_by: str) -> Group:
    """Help for what is shown: its text, the words of the manual that are in it, and the keys.
    Without such words all of them, below the keys.
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
    return any(
        re.search(rf"(?<!\w){re.escape(part.strip())}s?(?!\w)", shown) for part in word.split(",")
    )
