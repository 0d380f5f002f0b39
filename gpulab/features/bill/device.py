"""The bill of a device: a step of a followed program by what the device did, and where it was idle
by what the host did then.

What is busy keeps the seconds of the recording. What is idle is longer in a recording, so it is
scaled to the rest of a step outside of recordings; what no recording explains is unbooked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gpulab.core.limits import NAME_LENGTH, TEXT_LENGTH
from gpulab.core.text import short_name
from gpulab.draw.blocks import Block, Group
from gpulab.features.bill.events import MOST_ROWS, DeviceBooked, DeviceTime
from gpulab.features.bill.result import LEAST, OTHERS, UNBOOKED, BillReport, BillRow, ProcessBill
from gpulab.features.bill.trace import BUSY, COPIES, IDLE, TraceBill, bill_of
from gpulab.features.bill.trace_view import trace_bills

if TYPE_CHECKING:
    from gpulab.report.feature import Draft
    from gpulab.report.report import RunReport
    from gpulab.traces.trace import Trace

Origins = Mapping[str, Mapping[tuple[str, str], float]]
"""Of kernels and calls by name, and of causes: weights of the operations and lines they are of."""


def booked(variant: str, trace: Trace, steps: int, origins: Origins) -> DeviceBooked | None:
    """Return the bill of the device in a recording of steps; None where it did nothing."""
    bill = bill_of("", trace, "")
    if bill.busy_s is None:
        return None
    rows = [part for row in bill.rows for part in _by_origin(row, origins)]
    rows.sort(key=lambda row: -row.seconds)
    small: dict[str, float] = {}
    for row in rows[MOST_ROWS // 2 :]:
        small[row.cause] = small.get(row.cause, 0.0) + row.seconds
    kept = rows[: MOST_ROWS // 2]
    kept += [
        DeviceTime(cause=cause, of="", operation="", line="", seconds=seconds)
        for cause, seconds in small.items()
    ]
    return DeviceBooked(variant=variant, steps=steps, rows=kept)


def _by_origin(row: BillRow, origins: Origins) -> list[DeviceTime]:
    """Return a row as one of each operation and line, by their weights."""
    weights = origins.get(row.of or row.cause.removeprefix(f"{IDLE}: "), {})
    total = sum(weights.values())
    if total <= 0:
        weights, total = {("", ""): 1.0}, 1.0
    return [
        DeviceTime(
            cause=row.cause[:NAME_LENGTH],
            of=row.of[:TEXT_LENGTH],
            operation=operation[:TEXT_LENGTH],
            line=line[:TEXT_LENGTH],
            seconds=row.seconds * weight / total,
        )
        for (operation, line), weight in weights.items()
    ]


def device_of(draft: Draft, report: RunReport) -> ProcessBill | None:
    """Return the bill of the device for a step as long as one outside of recordings; None without
    a recording of a device.
    """
    variants = draft.state.variants.values()
    event = next(filter(None, (variant.last(DeviceBooked) for variant in variants)), None)
    goodput = report.variants[0].goodput if report.variants else None
    if event is None or goodput is None or not goodput.step_s:
        return None
    step_s: float = goodput.step_s
    busy_s = _seconds(event, idle=False)
    idle_s = _seconds(event, idle=True)
    of_busy = min(1.0, step_s / busy_s) if busy_s else 1.0
    left_s = max(0.0, step_s - busy_s)
    of_idle = min(1.0, left_s / idle_s) if idle_s else 1.0
    rows = [
        _row(row, row.seconds / event.steps * (of_idle if _is_idle(row) else of_busy))
        for row in event.rows
    ]
    rows.append(BillRow(cause=UNBOOKED, seconds=max(0.0, left_s - idle_s * of_idle)))
    kept: list[BillRow] = []
    small: dict[str, float] = {}
    for row in rows:
        if row.seconds >= LEAST * step_s and not _is_rest(row):
            kept.append(row)
        else:
            small[row.cause] = small.get(row.cause, 0.0) + row.seconds
    # by cause, so that what is busy is the sum of its rows: a model has hundreds of small kernels
    kept += [BillRow(cause=cause, of=OTHERS, seconds=s) for cause, s in small.items() if s > 0]
    kept.sort(key=lambda row: -row.seconds)
    return ProcessBill(role="device", wall_s=step_s, rows=kept)


def _is_rest(row: BillRow) -> bool:
    """Return whether it is what was too small for a row of the event."""
    return row.cause in (BUSY, COPIES) and not (row.of or row.function or row.lines)


def _is_idle(row: DeviceTime | BillRow) -> bool:
    return row.cause.startswith(IDLE)


def _seconds(event: DeviceBooked, *, idle: bool) -> float:
    """Return the seconds of a step that was recorded, idle or not."""
    return sum(row.seconds for row in event.rows if _is_idle(row) == idle) / event.steps


def _row(row: DeviceTime, seconds: float) -> BillRow:
    file, _, line = row.line.rpartition(":")
    lines = [int(line)] if line.isdigit() else []
    return BillRow(
        cause=row.cause,
        of=row.of,
        seconds=seconds,
        file=file,
        function=row.operation,
        lines=lines,
    )


def device(report: RunReport) -> Block | None:
    """Return the bill of the device of a step in a table; None of a run without one."""
    part: BillReport | None = report.get("bill")
    bill = part.device if part else None
    if bill is None:
        return None
    rows = [replace(row, of=_place(row)) for row in bill.rows]
    busy = [row for row in rows if row.cause.startswith("device") and not _is_idle(row)]
    busy_s = sum(row.seconds for row in busy)
    bill_of_step = TraceBill(file="a step", wall_s=bill.wall_s, busy_s=busy_s, rows=rows)
    return Group("", trace_bills([bill_of_step], []))


def _place(row: BillRow) -> str:
    """Return the line, the operation and the kernel or call of a row."""
    line = f"{row.file}:{row.lines[0]}" if row.lines else ""
    return " ".join(filter(None, (line, row.function, short_name(row.of))))
