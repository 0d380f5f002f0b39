"""SQLite files: exports of Nsight Systems (2020 to 2026), and what rocprofv3 writes by default.

Their tables and columns differ by version, and are there only where something was recorded. Schema:
https://docs.nvidia.com/nsight-systems/UserGuide (SQLite Schema Reference);
https://rocm.docs.amd.com/projects/rocprofiler-sdk (rocpd output format).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from gpulab.core.limits import TRACE_EVENTS
from gpulab.core.text import one_line
from gpulab.features.other_profilers.records import (
    CALL,
    COPY,
    FUNCTION,
    KERNEL,
    OPERATION,
    RANGE,
    SET,
    Record,
    recordings,
)
from gpulab.traces.recording import Recording

_WAL = b"\x02"
"""At byte 18 of a file whose journal is written ahead."""
_CUPTI = "CUPTI_ACTIVITY_KIND_"
_MARKS = ("ANALYSIS_DETAILS", "META_DATA_EXPORT", "EXPORT_META_DATA", f"{_CUPTI}RUNTIME")
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
_COPIES |= {11: "HtoD, unified memory", 12: "DtoH, unified memory", 13: "DtoD, unified memory"}
"""Of CUPTI's CUpti_ActivityMemcpyKind; nsys adds those of unified memory."""
_RANGES, _DOMAIN = (59, 60), 75
"""Types of events of NVTX: pushed and popped, started and ended; a domain was made."""
_ERROR = 3
_MOST_LETTERS, _MOST_TABLES = 4_096, 3


def read_database(path: Path, header: bytes) -> list[Recording]:
    """Return the timelines of a database, which is opened to be read and nothing else. ValueError
    where it is none, or another program's.
    """
    mode = "mode=ro"
    if header[18:19] == _WAL and not path.with_name(f"{path.name}-wal").exists():
        mode += "&immutable=1"  # else SQLite would create files beside it
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as database:
            return _read(path.name, database)
    except sqlite3.Error as error:
        words = "an SQLite file that cannot be read, or was not written to its end"
        raise ValueError(f"{words}: {one_line(str(error))}") from None


def _read(name: str, database: sqlite3.Connection) -> list[Recording]:
    there = [row[0] for row in database.execute("SELECT name FROM sqlite_master ORDER BY name")]
    if "rocpd_kernel_dispatch" in there:
        return recordings(name, _rocpd(database))
    if not any(table in there for table in _MARKS):
        named = ", ".join(there[:_MOST_TABLES]) or "none"
        raise ValueError(
            f"an SQLite file, and no export of Nsight Systems or rocprofv3; its tables: {named}"
        )
    devices = list(_of_devices(database))
    errors = []
    if not devices:
        told = _rows(database, "DIAGNOSTIC_EVENT", "severity", "text")
        errors = [one_line(str(text)) for severity, text in told if severity == _ERROR][:1]
    return recordings(name, [*devices, *_of_host(database)], *errors)


def _rows(database: sqlite3.Connection, table: str, *columns: str) -> Iterator[Any]:
    """Yield the rows of a table, None for columns that it does not have; none where it is not."""
    there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    names = ", ".join(f'"{column}"' if column in there else "NULL" for column in columns)
    if there:
        yield from database.execute(f"SELECT {names} FROM {table} LIMIT {TRACE_EVENTS + 1}")


def _texts(database: sqlite3.Connection) -> Callable[[object], str]:
    texts = {}
    for number, text in _rows(database, "StringIds", "id", "value"):
        texts[number] = str(text)[:_MOST_LETTERS]
    return lambda value: value if isinstance(value, str) else texts.get(value, "")


def _of_devices(database: sqlite3.Connection) -> Iterator[Record]:
    text = _texts(database)
    where = ("start", "end", "globalPid", "streamId", "deviceId", "correlationId")

    def record(kind: str, name: str, row: Any) -> Record:
        start, end, process, stream, device, correlation = row
        return Record(
            kind, name, start, end, (process or 0) >> 24, stream or 0, device or 0, correlation
        )

    for long, short, *row in _rows(
        database, f"{_CUPTI}KERNEL", "demangledName", "shortName", *where
    ):
        yield record(KERNEL, text(long) or text(short) or "kernel", row)
    for graph, *row in _rows(database, f"{_CUPTI}GRAPH_TRACE", "graphId", *where):
        yield record(KERNEL, f"CUDA graph {graph}", row)
    for kind, *row in _rows(database, f"{_CUPTI}MEMCPY", "copyKind", *where):
        yield record(COPY, f"Memcpy {_COPIES.get(kind, f'kind {kind}')}", row)
    for row in _rows(database, f"{_CUPTI}MEMSET", *where):
        yield record(SET, "Memset", row)


def _of_host(database: sqlite3.Connection) -> Iterator[Record]:
    text = _texts(database)
    threads = set()
    for start, end, thread, name, correlation in _rows(
        database, f"{_CUPTI}RUNTIME", "start", "end", "globalTid", "nameId", "correlationId"
    ):
        threads.add(thread)
        called = re.sub(r"_v\d+$", "", text(name))
        yield Record(CALL, called, start, end, *_thread(thread), correlation=correlation)
    domains = {}
    ranges = []
    columns = ("start", "end", "eventType", "globalTid", "text", "textId", "domainId")
    for start, end, kind, thread, inline, number, domain in _rows(
        database, "NVTX_EVENTS", *columns
    ):
        name = text(inline) or text(number)
        if kind == _DOMAIN:
            domains[domain] = name
        if kind in _RANGES:
            ranges.append((domain, name, start, end, thread))
    for domain, name, start, end, thread in ranges:
        if name.startswith("aten::"):  # of torch's emit_nvtx
            yield Record(OPERATION, name.partition(",")[0], start, end, *_thread(thread))
        else:
            known = f"{domains[domain]}: {name}" if domains.get(domain) else name
            yield Record(RANGE, known, start, end, *_thread(thread))
    for start, end, thread, name in _rows(
        database, "OSRT_API", "start", "end", "globalTid", "nameId"
    ):
        if thread in threads:  # others are the profiler's own, and the driver's
            yield Record(FUNCTION, f"OS runtime: {text(name)}", start, end, *_thread(thread))


def _thread(number: int | None) -> tuple[int, int]:
    """Process and thread of nsys's `globalTid`, as its `globalPid` has the process."""
    return (number or 0) >> 24, (number or 0) & 0xFFFFFF


def _rocpd(database: sqlite3.Connection) -> Iterator[Record]:
    when = ("name", "start", "end", "pid", "stream_id")
    for name, start, end, process, stream, device in _rows(
        database, "kernels", *when, "agent_abs_index"
    ):
        yield Record(KERNEL, name, start, end, process, stream, device)
    agents = ("src_agent_abs_index", "dst_agent_abs_index", "dst_agent_type")
    for name, start, end, process, stream, source, target, kind in _rows(
        database, "memory_copies", *when, *agents
    ):
        device = target if kind == "GPU" else source
        yield Record(COPY, name, start, end, process, stream, device)
    for name, start, end, process, thread, category in _rows(
        database, "regions", "name", "start", "end", "pid", "tid", "category"
    ):
        if str(category).startswith("HIP"):
            yield Record(CALL, name, start, end, process, thread)
        elif str(category).startswith("MARKER") and not str(name).startswith("roctx"):
            yield Record(RANGE, name, start, end, process, thread)
