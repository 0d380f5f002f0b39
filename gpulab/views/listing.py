"""The catalog as a list: topics, scenarios, what the machine lacks, and files that cannot be read."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.text import Text

from gpulab.views.text import Glyphs


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario of the list; `missing` and `error` say why it cannot run here."""

    name: str
    topic: str = ""
    title: str = ""
    claim: str = ""
    path: str = ""
    variants: tuple[str, ...] = ()
    params: dict[str, bool | int | float | str] = {}
    missing: str | None = None
    error: str | None = None


def listing(rows: Sequence[Row], glyphs: Glyphs) -> Text:
    """A line a scenario under its topic; files with errors last."""
    text = Text(no_wrap=True, overflow="ellipsis")
    width = max((len(row.name) for row in rows), default=0) + 2
    topic = None
    for row in rows:
        if row.error:
            continue
        if row.topic != topic:
            topic = row.topic
            text.append(glyphs(f"{topic}\n"), style="bold")
        told = f"  ({row.missing})" if row.missing else ""
        text.append(glyphs(f"  {row.name:<{width}}{row.title}{told}\n"), style="dim" if row.missing else "")
    for row in rows:
        if row.error:
            text.append(glyphs(f"{row.path}\n  {row.error}\n"), style="red")
    text.rstrip()
    return text
