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
from gpulab.features.other_profilers.records import CALL, COPY, KERNEL, RANGE, Record, recordings
from gpulab.traces.recording import Recording

TABLE = re.compile(
    r'^"?(?:Guid",")?(?:Start ?\(ns|Time ?\(%\)|Name","?Calls|Kind"?,|Domain"?,|Index"?,"?Kernel)',
    re.MULTILINE,
)
"""The first line of a profiler's table."""
_BESIDE = re.compile(r"(kernel|hip_api|memory_copy|marker_api|cuda_gpu|cuda_api)_trace(?=\.csv$)")
_NAMES = ("kernel_name", "function", "direction", "name", "operation", "range")
_FIRST_NAMES = {"kernelname": "kernel_name", "beginns": "start_timestamp", "endns": "end_timestamp"}
"""Of columns of rocprof's first versions."""
_TOTALS = ("total time", "totaldurationns")
_SUMMED = "a summary has no timeline: no idle time, and shares are of what it lists"

Row = dict[str, str]


def read_tables(path: Path) -> list[Recording] | None:
    """Return the timeline of a file with events, and of those of the same recording beside it, or a
    summary for each table; None where there are neither. ValueError.
    """
    try:
        summaries = [
            Recording(path.name, None, _SUMMED, _sums(rows))
            for rows in _tables(path)
            if rows and any(name in rows[0] for name in _TOTALS)
        ]
        records = list(_records(path))
        if not records:
            return summaries or None
        others = list(_others(path))
        records.extend(record for other in others for record in _records(other))
    except (ValueError, KeyError, csv.Error) as error:
        raise ValueError(f"not a table as the profiler writes it: {error}") from None
    return recordings(" and ".join(each.name for each in (path, *others)), records)


def _others(path: Path) -> Iterator[Path]:
    """The other tables of events that the profiler wrote at once with this one."""
    stem = _BESIDE.sub("*", path.name)
    for other in sorted(path.parent.iterdir()):
        if other != path and _BESIDE.sub("*", other.name) == stem:
            yield other


def _tables(path: Path) -> Iterator[list[Row]]:
    """The rows by the names of the columns, in lower case and without the unit, nanoseconds."""
    with open_regular(path) as file:
        lines = file.read().decode("utf-8-sig", errors="replace").splitlines()
    starts = [number for number, line in enumerate(lines) if TABLE.match(line)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        head, *rows = csv.reader(lines[start:end])
        names = [re.sub(r" ?\(ns(ec)?\)", "", name).lower() for name in head]
        names = [_FIRST_NAMES.get(name, name) for name in names]
        yield [dict(zip(names, row, strict=True)) for row in rows if len(row) == len(names)]


def _name(row: Row) -> str:
    return next((row[key] for key in _NAMES if row.get(key)), "")


def _sums(rows: list[Row]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        name = _name(row)
        cause = "device busy"
        if "range" in row:
            cause = "ranges"
        elif "operation" in row or name.startswith(("Copy", "MEMORY_COPY")):
            cause = "device copies"
        elif "num calls" in row or name.startswith(("hip", "__hip", "hsa")):
            cause = "calls of the host"
        found[cause, name] += float(next(row[key] for key in _TOTALS if key in row)) * 1e-9
    return found


def _records(path: Path) -> Iterator[Record]:
    for row in (row for rows in _tables(path) for row in rows):
        if "start" in row:
            start = int(row["start"])
            yield _of_nsys(row, start, start + int(row["duration"]))
        elif "start_timestamp" in row:
            yield from _of_rocprof(row, int(row["start_timestamp"]), int(row["end_timestamp"]))


def _of_nsys(row: Row, start: int, end: int) -> Record:
    name = _name(row).strip("[]")
    if "strm" not in row:  # ranges of NVTX have no correlation
        kind = CALL if "corrid" in row else RANGE
        return Record(kind, name, start, end, _number(row, "pid"), _number(row, "tid"))
    kind = COPY if name.startswith("CUDA mem") else KERNEL
    return Record(kind, name, start, end, 0, _number(row, "strm"), _number(row, "device"))


def _of_rocprof(row: Row, start: int, end: int) -> Iterator[Record]:
    """Tables of kernels and copies do not name the process."""
    name = _name(row)
    if "kernel_name" in row:
        device = _number(row, "agent_id", "gpu-id")
        yield Record(KERNEL, name, start, end, 0, _number(row, "queue_id"), device)
    elif "direction" in row:
        agent = "destination" if name.endswith("TO_DEVICE") else "source"
        yield Record(COPY, name, start, end, 0, 0, _number(row, f"{agent}_agent_id"))
    elif row.get("domain", "").startswith(("HIP", "MARKER")):
        kind = CALL if row["domain"].startswith("HIP") else RANGE
        yield Record(kind, name, start, end, _number(row, "process_id"), _number(row, "thread_id"))


def _number(row: Row, *names: str) -> int:
    """The last number of the first of these columns that is there, as in "Agent 4"."""
    digits = re.findall(r"\d+", next((row[name] for name in names if name in row), ""))
    return int(digits[-1]) if digits else 0
