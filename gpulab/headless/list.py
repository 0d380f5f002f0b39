"""`--list`: what there is to run, here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpulab.headless.output import write_json
from gpulab.headless.terminal import terminal
from gpulab.run.catalog import catalog
from gpulab.run.request import UsageError
from gpulab.views.listing import listing


def show_list(paths: Sequence[str], *, json: str | None, ascii_only: bool) -> int:
    """Print the catalog, with the files and folders given before those found. UsageError where one is not there."""
    places = [Path(path) for path in paths]
    for place in places:
        if not place.exists():
            raise UsageError(f"--list {place}: there is no such file or folder")
    rows = [entry.row for entry in catalog(places)]
    if json:
        write_json(rows, json)
        return 0
    shown = terminal(ascii_only=ascii_only)
    shown.out.print(listing(rows, shown.glyphs), soft_wrap=not shown.out.is_terminal)
    return 0
