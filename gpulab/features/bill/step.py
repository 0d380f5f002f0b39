"""The bill of a step: all of its seconds, each booked once, to an operation, a kernel or a line.

The parts of the partition are measured; operations of the recording divide what is busy, samples of
lines what is not. What neither knows stays with its part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from gpulab.core.payloads import BUSY, USEFUL
from gpulab.features.bill.result import BillRow
from gpulab.report.report import RunReport, VariantReport

if TYPE_CHECKING:
    from gpulab.features.goodput.events import LineTime, Operation
    from gpulab.features.goodput.result import GoodputReport

COPIES, OUTSIDE = "copies", "other"
OFF = ("waiting", "not running")
_HOST_BUSY = (USEFUL, "other busy", "alloc")
_Key = tuple[str, str, str, int]
"""Cause, operation or function, file, line."""


class VariantPart(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a variant's report about the seconds of its step."""

    step_bill: list[BillRow] = []
    """They sum to the step, the largest first; empty where no step was recorded."""


def add_steps(report: RunReport) -> RunReport:
    """Return the report with the bill of each step that was recorded."""
    variants = [variant.with_parts(step_bill=step_bill(variant)) for variant in report.variants]
    return msgspec.structs.replace(report, variants=variants)


def step_bill(variant: VariantReport) -> list[BillRow]:
    """Return the rows of a variant's step, the largest first."""
    goodput: GoodputReport | None = variant.goodput
    if goodput is None or not goodput.seconds:
        return []
    rows = sorted(_rows(goodput), key=lambda row: -row.seconds)
    return [row for row in rows if row.seconds > 0]


def _rows(goodput: GoodputReport) -> Iterator[BillRow]:
    rest = dict(goodput.seconds)
    on_device = any(row.on_device for row in goodput.operations)
    rows = [row for row in goodput.operations if row.on_device == on_device and row.rows == 1]
    if on_device:
        kernels = [row for row in rows if not row.name.startswith("Mem")]
        copies = [row for row in rows if row.name.startswith("Memcpy")]
        yield from _divided(rest, [each for each in BUSY if each != COPIES], _seconds_of(kernels))
        yield from _divided(rest, [COPIES], _seconds_of(copies))
    else:
        yield from _divided(rest, _HOST_BUSY, _seconds_of(rows))
        ran, waited = _of_lines(goodput.lines, goodput.step_s or 0.0)
        yield from _divided(rest, [OUTSIDE], ran)
        yield from _divided(rest, OFF, waited)
    unknown = "not explained" if on_device else "outside of operations"
    for part, seconds in rest.items():
        yield BillRow(cause=unknown if part == OUTSIDE else part, seconds=seconds)


def _seconds_of(rows: Iterable[Operation]) -> dict[_Key, float]:
    """Return the seconds of the operations of each line, whatever their shapes; of those without a
    line, by operation.
    """
    found: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        found[row.line or "", "" if row.line else row.name][row.name] += row.self_s
    seconds: dict[_Key, float] = {}
    for (place, _), by_name in found.items():
        most = max(by_name, key=lambda name: by_name[name])
        others = f" and {len(by_name) - 1} more" if len(by_name) > 1 else ""
        seconds[USEFUL, f"{most}{others}", *_split(place)] = sum(by_name.values())
    return seconds


def _split(place: str) -> tuple[str, int]:
    """Return the file and the line of a place such as train.py:42."""
    file, _, line = place.rpartition(":")
    return file, int(line) if line.isdigit() else 0


def _of_lines(
    lines: Iterable[LineTime], step_s: float
) -> tuple[dict[_Key, float], dict[_Key, float]]:
    """Return the seconds in which each line ran outside of operations, and in which it waited."""
    ran: dict[_Key, float] = defaultdict(float)
    waited: dict[_Key, float] = defaultdict(float)
    for each in lines:  # several expressions of a line
        place = each.function, *_split(each.line)
        ran["", *place] += each.running * step_s
        waited["waiting", *place] += each.waiting * step_s
    return ran, waited


def _divided(
    rest: dict[str, float], parts: Iterable[str], found: Mapping[_Key, float]
) -> Iterator[BillRow]:
    """Yield rows of what was found, and take them from the parts: never more than these have."""
    left = {part: rest[part] for part in parts if rest.get(part)}
    whole_s = sum(left.values())
    found_s = sum(found.values())
    if not whole_s or not found_s:
        return
    scale = min(1.0, whole_s / found_s)
    for part, seconds in left.items():
        rest[part] = seconds * (1 - scale * found_s / whole_s)
    for (cause, of, file, line), seconds in found.items():
        yield BillRow(
            cause=cause,
            of=of if cause == USEFUL else "",
            seconds=seconds * scale,
            file=file,
            function="" if cause == USEFUL else of,
            lines=[line] if line else [],
        )
