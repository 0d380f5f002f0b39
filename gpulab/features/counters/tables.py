"""Tables that ncu prints with `--csv`: of its raw page, of its page of details, and what it prints
while it profiles, with other lines before and between.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field

from gpulab.features.counters.metrics import Advice, CountedKernel, counted_kernel, short_text

HEADER = re.compile(r"^(?=.*\bKernel Name\b)(?=.*(?:\bMetric Name\b|\w__\w)).*$", re.MULTILINE)
"""The heads of such a table, on one line."""
_TIMES = {"ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "ms": 1e-3, "msecond": 1e-3}
_TIMES |= {"s": 1.0, "second": 1.0}
_BYTES = re.compile(r"([KMGTP]?)byte(/s(?:econd)?)?$")
_POWERS = "KMGTP"
_NUMBER = re.compile(r"-?\d[\d.,]*(?:e[+-]?\d+)?", re.IGNORECASE)
_COMMA_IS_POINT = re.compile(r"-?\d{1,3}(?:\.\d{3})*,(?:\d{1,2}|\d{4,})|\d{1,3}(?:\.\d{3}){2,}")
"""A number as ncu writes it where the system's language does, such as 65,77 or 27.595.520."""


def kernels_of(text: str) -> list[CountedKernel]:
    """Every launch in a text, in its order. ValueError where it has none, or is no such table."""
    start = HEADER.search(text)
    if start is None:
        raise ValueError("no table of ncu is in it: export one by --page raw --csv")
    try:
        rows = list(csv.reader(text[start.start() :].splitlines(keepends=True)))
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from None
    comma = any(_COMMA_IS_POINT.fullmatch(cell) for row in rows for cell in row)
    launches: dict[tuple[object, ...], _Launch] = {}
    heads: list[str] = []
    units: defaultdict[str, str] = defaultdict(str)
    for number, row in enumerate(rows):
        cells = defaultdict(str, zip(heads, row, strict=False))
        if "Kernel Name" in row:
            heads = row
            units = cells
        elif "Metric Name" in cells:
            names = ("ID", "Process ID", "Kernel Name", "Grid Size", "Block Size")
            key = tuple(cells[name] for name in names)
            launches.setdefault(key, _Launch(cells, comma)).add_line(cells)
        elif "Metric Name" not in heads and len(row) == len(heads):
            if cells["Kernel Name"]:
                launches[(number,)] = _Launch(cells, comma)
                launches[(number,)].add_row(units)
            else:
                units = cells
    found = [launch.kernel() for launch in launches.values() if launch.raw]
    if not found:
        raise ValueError(
            "a table of ncu without a kernel: nothing was profiled, it was cut, or is a summary"
        )
    return found


@dataclass
class _Launch:
    cells: defaultdict[str, str]
    comma: bool
    raw: dict[str, float] = field(default_factory=dict)
    advice: list[Advice] = field(default_factory=list)

    def kernel(self) -> CountedKernel:
        size = self.cells["Grid Size"], self.cells["Block Size"]
        return counted_kernel(self.cells["Kernel Name"], size, self.raw, self.advice)

    def add_row(self, units: defaultdict[str, str]) -> None:
        """Take in a row of the raw page, which has all metrics of a launch."""
        for name, value in self.cells.items():
            if "__" in name:
                self._add(name, units[name], value)

    def add_line(self, cells: defaultdict[str, str]) -> None:
        """Take in a row of the page of details, which has one metric, or one rule."""
        self._add(cells["Metric Name"], cells["Metric Unit"], cells["Metric Value"])
        percent = self._number(cells["Estimated Speedup"])
        if percent:
            rule, text = short_text(cells["Rule Name"]), short_text(cells["Rule Description"], 1000)
            scope = short_text(cells["Estimated Speedup Type"])
            self.advice.append(Advice(rule=rule, text=text, percent=percent, scope=scope))

    def _add(self, name: str, unit: str, value: str) -> None:
        """Take in a metric: its first value counts, and one that is no number is none."""
        number = self._number(value)
        if number is not None:
            factor, base = base_unit(unit)
            self.raw.setdefault(name if "__" in name else f"{name} {base}", number * factor)

    def _number(self, text: str) -> float | None:
        """A number with thousands separators; None for n/a and everything else."""
        found = _NUMBER.match(text)
        if found is None:
            return None
        digits = found[0].replace(",", "")
        if self.comma:
            digits = found[0].replace(".", "").replace(",", ".")
        with suppress(ValueError):
            return float(digits)
        return None


def base_unit(unit: str) -> tuple[float, str]:
    """What a value is to be multiplied by, and its unit then. Kbyte is 1,000 bytes."""
    if unit in _TIMES:
        return _TIMES[unit], "s"
    if found := _BYTES.match(unit):
        power = _POWERS.find(found[1]) + 1 if found[1] else 0
        return 1000.0**power, "byte/s" if found[2] else "byte"
    return 1.0, unit
