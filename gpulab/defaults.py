"""Defaults of flags, from the nearest gpulab.toml: a table for each mode.

[run]
time = 20
set = { n = 64 }
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpulab.modes import Mode
from gpulab.options import UsageError, flags

_MOST_BYTES = 1_000_000
NAME = "gpulab.toml"
"""In the working directory or above; thresholds of scenarios stand there too."""


def defaults_of(mode: Mode) -> Mapping[str, Any]:
    """By the names of options. UsageError, which names the file and the key."""
    path = _nearest()
    tables = tables_in(path) if path else {}
    table_mode = Mode.RUN if mode == Mode.FOLLOW else mode
    name = "screen" if mode == Mode.SCREEN else table_mode.lstrip("-")
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {name}: write [{name}], and a line for each flag")
    by_key = {flag.name.lstrip("-"): (option, flag) for option, flag in flags().items()}
    values = {}
    for key, given in table.items():
        option, flag = by_key.get(key.replace("_", "-"), ("", None))
        if flag is None or table_mode not in flag.modes:
            raise UsageError(f"{path}: [{name}] {key}: {table_mode} takes no --{key}")
        if given in ([], {}):
            continue
        if isinstance(given, dict):
            given = [f"{each}={value}" for each, value in given.items()]
        elif flag.several and not isinstance(given, list):
            given = [given]
        if mode in flag.modes:
            values[option] = flag.value(given, f"{path}: [{name}] {key} = ")
    return values


def _nearest() -> Path | None:
    """Above the folder one stands in only a file of whoever owns that: a stranger's, in /tmp, could
    name code to run.
    """
    with suppress(OSError):  # the folder was deleted, or one above may not be searched
        here = Path.cwd()
        for folder in (here, *here.parents):
            path = folder / NAME
            if path.is_file() and (folder == here or path.stat().st_uid == here.stat().st_uid):
                return path
    return None


def tables_in(path: Path) -> dict[str, Any]:
    """UsageError where it is no TOML, or cannot be read."""
    import tomllib

    from gpulab.core.files import read_regular

    try:
        return tomllib.loads(read_regular(path, _MOST_BYTES).decode())
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
