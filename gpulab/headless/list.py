"""`--list`: what there is to run, here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpulab.catalog.catalog import catalog
from gpulab.catalog.view import listing
from gpulab.headless.output import open_terminal, write_json
from gpulab.options import Options
from gpulab.session.settings import check_paths


def show_list(paths: Sequence[str], options: Options) -> int:
    """Print the catalog, with the files and folders given before those found. UsageError where one
    is not there.
    """
    places = [Path(path) for path in paths]
    check_paths(places, "--list ")
    rows = [entry.row for entry in catalog(places)]
    if options.json:
        write_json(rows, options.json)
        return 0
    terminal = open_terminal(ascii_only=options.ascii)
    terminal.show(listing(rows))
    return 0
