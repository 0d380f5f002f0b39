"""Defaults of options, from the nearest gpulab.toml: [defaults.run] quick = true."""

from __future__ import annotations

import tomllib
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from gpulab.modes import Mode
from gpulab.options import FLAGS, Flag
from gpulab.session.settings import UsageError

FILE = "gpulab.toml"
TABLE = "defaults"
"""Of the file, which also has thresholds of scenarios."""


def defaults_of(mode: Mode) -> dict[str, Any]:
    """Values by the names of the options; UsageError of a key that the mode does not take."""
    try:
        here = Path.cwd()
    except OSError:  # it was deleted: who needs it says so
        return {}
    path = next(
        (folder / FILE for folder in (here, *here.parents) if (folder / FILE).is_file()), None
    )
    if path is None:
        return {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get(TABLE, {})
    except (OSError, ValueError, RecursionError):  # who reads thresholds says what is wrong
        return {}
    name = "screen" if mode == Mode.SCREEN else mode.lstrip("-")
    table = tables.get(name, {}) if isinstance(tables, dict) else {}
    where = f"{path}: [{TABLE}.{name}]"
    if not isinstance(table, dict):
        raise UsageError(f"{where}: write a table of options")
    flags = {flag.name.lstrip("-"): flag for flag in FLAGS if mode in flag.modes}
    values = {}
    for key, value in table.items():
        if key not in flags:
            raise UsageError(f"{where} {key}: --{name} takes no such option")
        values[flags[key].destination] = _value(flags[key], value, f"{where} {key}")
    return values


def _value(flag: Flag, value: object, where: str) -> Any:
    action = flag.options.get("action")
    if action == "store_true":
        if not isinstance(value, bool):
            raise UsageError(f"{where}: write true or false")
        return value
    parser = flag.options.get("type", str)
    try:
        if action == "append":
            listed = value if isinstance(value, list) else [value]
            return [parser(str(each)) for each in listed]
        parsed = parser(str(value))
    except ArgumentTypeError as error:
        raise UsageError(f"{where}: {error}") from None
    choices = flag.options.get("choices")
    if choices and parsed not in choices:
        raise UsageError(f"{where}: write one of {', '.join(choices)}")
    return parsed
