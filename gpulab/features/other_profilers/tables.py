"""CSV of `nsys stats`, rocprof and rocprofv3: events one a line, or sums by name, which have no
timeline. Known by the names of the columns, not of the files; lines before a table are passed over.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from gpulab.core.files import open_regular
from gpulab.features.other_profilers.records import CALL, COPY, KERNEL, RANGE, Record, recordings
from gpulab.traces.recording import Recording

TABLE = re.compile(
    r'^"?(?:Guid",")?(?:Start ?\(\w?s|Time ?\(%|Name","?Calls|Kind"?,|Domain"?,|Index"?,"?Kernel)',
    re.MULTILINE,
)
"""The first line of a profiler's table."""
_BESIDE = re.compile(r"(kernel|hip_api|memory_copy|marker_api|cuda_gpu|cuda_api)_trace(?=\.csv$)")
_TIMED = re.compile(r"(start|duration|total time) ?\((\w?)s(?:ec)?\)")
_NANOSECONDS = {"n": 1, "m": 10**6, "": 10**9}
"""Of a unit; others are microseconds, whose sign differs."""
_REPORT = re.compile(r"(\w+sum)[).:]")
"""The name of what `nsys stats` wrote, in a line before the table."""
_NAMES = ("kernel_name", "function", "direction", "name", "operation", "range")
_FIRST_NAMES = {"kernelname": "kernel_name", "beginns": "start_timestamp", "endns": "end_timestamp"}
_FIRST_NAMES |= {"totaldurationns": "total time"}
"""Of columns of rocprof's first versions."""
_SUMMED = "a summary has no timeline: no idle time, and shares are of what it lists"

Row = dict[str, str]
Table = tuple[str, list[Row]]


def read_tables(path: Path) -> list[Recording]:
    """Return the timeline of a file with events, or a summary for each table. ValueError where
    there are neither.

    Tables beside it are of the same recording where the same text stands before what they list
    (`5_kernel_trace.csv`, `5_hip_api_trace.csv`), and at most 10 s are between their times: a
    program may load what it needs before its first kernel, other runs have other clocks.
    """
    try:
        tables = list(_tables(path))
        records = list(_records(tables))
        names = [path.name]
        for other in _others(path) if records else ():
            beside = list(_records(_tables(other)))
            if beside and _apart(records, beside) <= 10 * 10**9:
                names.append(other.name)
                records.extend(beside)
    except (ValueError, KeyError, ArithmeticError, csv.Error) as error:
        raise ValueError(f"not a table as the profiler writes it: {error}") from None
    return recordings(" and ".join(names), records) if records else _summaries(path.name, tables)


def _summaries(name: str, tables: Sequence[Table]) -> list[Recording]:
    found = [(title, rows) for title, rows in tables if rows and "total time" in rows[0]]
    if not found:
        raise ValueError("no timestamps of kernels, copies, ranges, or calls of HIP or CUDA in it")
    return [
        Recording(name if len(found) == 1 else f"{name}: {title}", None, _SUMMED, _sums(rows))
        for title, rows in found
    ]


def _others(path: Path) -> list[Path]:
    """The other tables of events that the profiler wrote at once with this one."""
    stem = _BESIDE.sub("*", path.name)
    others = (each for each in sorted(path.parent.iterdir()) if each != path)
    return [each for each in others if _BESIDE.sub("*", each.name) == stem != "*.csv"]


def _apart(first: list[Record], second: list[Record]) -> int:
    """Nanoseconds from the end of the earlier to the start of the later; negative where both are
    under way at once.
    """
    starts = [min(record.start for record in each) for each in (first, second)]
    return max(starts) - min(max(record.end for record in each) for each in (first, second))


def _tables(path: Path) -> Iterator[Table]:
    """The name of each table, and its rows by the names of the columns, in lower case. Times are in
    nanoseconds, whatever unit the column has, and have no separators of thousands.
    """
    with open_regular(path) as file:
        lines = file.read().decode("utf-8-sig", errors="replace").splitlines()
    starts = [number for number, line in enumerate(lines) if TABLE.match(line)]
    for before, start, end in zip([0, *starts], starts, [*starts[1:], len(lines)], strict=False):
        title = [f"line {start + 1}", *_REPORT.findall("\n".join(lines[before:start]))][-1]
        head, *rows = csv.reader(lines[start:end])
        columns = [_column(name.lower()) for name in head]
        yield title, [dict(map(_cell, columns, row)) for row in rows if len(row) == len(head)]


def _column(name: str) -> tuple[str, int]:
    """Its name here, and of a time that is read how many nanoseconds its unit has."""
    if timed := _TIMED.fullmatch(name):
        return timed[1], _NANOSECONDS.get(timed[2], 10**3)
    return _FIRST_NAMES.get(name, name), 0


def _cell(column: tuple[str, int], text: str) -> tuple[str, str]:
    name, unit = column
    return name, str(int(Decimal(text.replace(",", "")) * unit)) if unit else text


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
        found[cause, name] += float(row["total time"]) * 1e-9
    return found


def _records(tables: Iterable[Table]) -> Iterator[Record]:
    for row in (row for _, rows in tables for row in rows):
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
