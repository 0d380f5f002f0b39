"""CSV of `nsys stats`, rocprof and rocprofv3: events one a line, or sums by name, which have no
timeline. Known by the names of the columns, not of the files; lines before a table are passed over.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gpulab.core.files import open_regular
from gpulab.features.other_profilers.records import (
    CALL,
    COPY,
    KERNEL,
    RANGE,
    SET,
    Record,
    recordings,
)
from gpulab.traces.recording import Recording

_UNIT = re.compile(r"\s*\((n|u|µ|m|)s(?:ec)?\)")
_NANOSECONDS = {"n": 1, "u": 1e3, "µ": 1e3, "m": 1e6, "": 1e9}
_TABLE = re.compile(
    r'^"?(?:Row#,|Guid",")?"?(?:Start ?\(|Time ?\(%\)|Name","?Calls|Kind"?,|Domain"?,)',
    re.MULTILINE,
)
_BESIDE = re.compile(
    r"(kernel|hip_api|hip_runtime_api|memory_copy|marker_api|cuda_gpu|cuda_api)_trace"
)
_RUNTIMES = ("cu", "hip", "__hip", "hsa")
_NAMES = ("kernel_name", "function", "direction", "name", "operation", "range")
_TOTALS = ("total time", "totaldurationns")
_SUMMED = "a summary has no timeline: no idle time, and shares are of what it lists"

Row = dict[str, str]


def has_table(head: str) -> bool:
    """Return whether a table of a profiler begins in the first part of a text."""
    return _TABLE.search(head) is not None


def read_tables(path: Path) -> list[Recording] | None:
    """Return the timeline of a file with events, and of those of the same recording beside it, or a
    summary for each table; None where there are neither. ValueError.
    """
    try:
        return _read(path)
    except (ValueError, KeyError, csv.Error) as error:
        raise ValueError(f"not a table as the profiler writes it: {error}") from None


def _read(path: Path) -> list[Recording] | None:
    records: list[Record] = []
    summaries = []
    for row_names, rows in _tables(path):
        if any(name in row_names for name in _TOTALS):
            summaries.append(Recording(path.name, None, _SUMMED, _sums(rows)))
        else:
            records.extend(_records(rows))
    if not records:
        return summaries or None
    read = [path.name]
    for other in _others(path):
        records.extend(record for _, rows in _tables(other) for record in _records(rows))
        read.append(other.name)
    return recordings(" and ".join(read), records)


def _others(path: Path) -> Iterator[Path]:
    """The other tables of events that the profiler wrote at once with this one."""
    stem = _BESIDE.sub("*", path.name)
    if stem == path.name:
        return
    for other in sorted(path.parent.iterdir()):
        if other != path and _BESIDE.sub("*", other.name) == stem:
            yield other


def _tables(path: Path) -> Iterator[tuple[list[str], list[Row]]]:
    """The names of the columns, in lower case and without units, and the rows; times in ns."""
    with open_regular(path) as file:
        lines = file.read().decode("utf-8-sig", errors="replace").splitlines()
    starts = [number for number, line in enumerate(lines) if _TABLE.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head, *rows = csv.reader(lines[start:end])
        names = [_UNIT.sub("", name).strip().lower() for name in head]
        factors = [_NANOSECONDS[unit[1]] if (unit := _UNIT.search(name)) else 0 for name in head]
        scaled = [dict(zip(names, _scaled(row, factors), strict=False)) for row in rows]
        yield names, [row for row in scaled if len(row) == len(names)]


def _scaled(row: list[str], factors: list[float]) -> Iterator[str]:
    for text, factor in zip(row, factors, strict=False):
        yield str(round(float(text) * factor)) if factor > 1 and text else text


def _sums(rows: list[Row]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        name = next((row[key] for key in _NAMES if key in row), "")
        total = next(row[key] for key in _TOTALS if key in row)
        if "range" in row:
            kind = RANGE
        elif "operation" in row or name.startswith(("Copy", "MEMORY_COPY")):
            kind = COPY
        elif "num calls" in row or name.startswith(_RUNTIMES):
            kind = CALL
        else:
            kind = KERNEL
        found[kind, name] += float(total) * 1e-9
    return found


def _records(rows: list[Row]) -> Iterator[Record]:
    for row in rows:
        name = next((row[key] for key in _NAMES if row.get(key)), "")
        if "start" in row:
            start, length = float(row["start"]), float(row["duration"])
            yield _of_nsys(row, name, round(start), round(start + length))
        elif "start_timestamp" in row:
            yield from _of_rocprof(
                row, name, int(row["start_timestamp"]), int(row["end_timestamp"])
            )


def _of_nsys(row: Row, name: str, start: int, end: int) -> Record:
    if "strm" not in row:
        return Record(CALL, name, start, end, _number(row, "pid"), _number(row, "tid"))
    kind = KERNEL
    if name.startswith("[CUDA mem"):
        kind = COPY if "memcpy" in name else SET
    device = _number(row, "device")
    return Record(kind, name.strip("[]"), start, end, 0, _number(row, "strm"), device)


def _of_rocprof(row: Row, name: str, start: int, end: int) -> Iterator[Record]:
    """Tables of kernels and copies do not name the process."""
    stream = _number(row, "stream_id", "queue_id")
    if "kernel_name" in row:
        yield Record(KERNEL, name, start, end, 0, stream, _number(row, "agent_id"))
    elif "direction" in row:
        agent = "destination" if name.endswith("TO_DEVICE") else "source"
        yield Record(COPY, name, start, end, 0, stream, _number(row, f"{agent}_agent_id"))
    elif row.get("domain", "").startswith(("HIP", "MARKER")):
        kind = CALL if row["domain"].startswith("HIP") else RANGE
        where = _number(row, "process_id"), _number(row, "thread_id")
        yield Record(kind, name, start, end, *where)


def _number(row: Row, *names: str) -> int:
    """The last number of the first of these columns that is there, as in "Agent 4"."""
    text = next((row[name] for name in names if row.get(name)), "")
    digits = re.findall(r"\d+", text)
    return int(digits[-1]) if digits else 0
