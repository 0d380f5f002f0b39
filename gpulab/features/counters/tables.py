"""Tables that ncu prints with `--csv --page raw`, of a report or while it profiles, also with other
lines before them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from contextlib import suppress

from gpulab.features.counters.metrics import CountedKernel, counted_kernel

HEADER = re.compile(r"^(?=.*\bKernel Name\b)(?=.*(?:\bMetric Name\b|\w__\w)).*$", re.MULTILINE)
"""The heads of a table of ncu, on one line."""
_UNIT = re.compile(r"([numKMGTP]?)(?:s|second|byte)")
_PREFIXES = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


def kernels_of(text: str) -> list[CountedKernel]:
    """Every launch in a text, in its order. ValueError where it has none, or is no such table."""
    start = HEADER.search(text)
    lines = text[start.start() :].splitlines(keepends=True) if start else ()
    units: dict[str, str] = {}
    found = []
    try:
        for cells in csv.DictReader(lines, restkey=""):
            if None in cells.values():  # it is another line, or was cut
                continue
            if cells.get("Kernel Name"):
                found.append(_kernel(cells, units))
            units = units or cells
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from None
    kernels = [kernel for kernel in found if kernel.metrics]
    if not kernels:
        raise ValueError("no kernel of ncu is in it: export all of a report by --page raw --csv")
    return kernels


def _kernel(cells: Mapping[str, str], units: Mapping[str, str]) -> CountedKernel:
    """The kernel of a row; a cell that has no number, such as n/a, is not there."""
    raw = {}
    for name, value in cells.items():
        if "__" in name:
            with suppress(ValueError):
                raw[name] = float(value.replace(",", "")) * factor_of(units.get(name, ""))
    size = cells.get("Grid Size", ""), cells.get("Block Size", "")
    # those of NVTX that hold for all threads: a backward pass has its own
    ranges = [cell for head, cell in cells.items() if "Start/Stop_Range" in head]
    return counted_kernel(cells["Kernel Name"], size, raw, ranges="".join(ranges))


def factor_of(unit: str) -> float:
    """What a value in this unit has in seconds or bytes; Kbyte is 1,000 bytes."""
    found = _UNIT.fullmatch(unit)
    return _PREFIXES.get(found[1], 1.0) if found else 1.0
