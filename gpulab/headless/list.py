"""`--list`: what there is to run, here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gpulab.headless.terminal import terminal
from gpulab.model.plain import plain
from gpulab.run.catalog import Entry, catalog
from gpulab.run.request import UsageError
from gpulab.views.listing import Row, listing


def show_list(paths: Sequence[str], *, json: str | None, ascii_only: bool) -> int:
    """Print the catalog, with the files and folders given before those found. UsageError where one is not there."""
    places = [Path(path) for path in paths]
    for place in places:
        if not place.exists():
            raise UsageError(f"--list {place}: there is no such file or folder")
    rows = [_row(entry) for entry in catalog(places)]
    if json:
        data = msgspec.json.format(msgspec.json.encode(rows)) + b"\n"
        if json == "-":
            sys.stdout.buffer.write(data)
        else:
            Path(json).write_bytes(data)
        return 0
    shown = terminal(ascii_only=ascii_only)
    shown.out.print(listing(rows, shown.glyphs), soft_wrap=not shown.out.is_terminal)
    return 0


def _row(entry: Entry) -> Row:
    scenario = entry.scenario
    if scenario is None:
        return Row(name=entry.name, title=entry.title, path=str(entry.path), error=str(entry.error))
    return Row(
        name=entry.name,
        topic=plain(scenario.topic),
        title=entry.title,
        claim=plain(scenario.claim),
        path=str(entry.path),
        variants=tuple(scenario.variants),
        params=scenario.params,
        missing=entry.missing,
    )
