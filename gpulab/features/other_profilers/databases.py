"""SQLite files: exports of Nsight Systems (2020 to 2026), and what rocprofv3 writes by default.

Their tables and columns differ by version, and are there only where something was recorded. Schema:
https://docs.nvidia.com/nsight-systems/UserGuide (SQLite Schema Reference);
https://rocm.docs.amd.com/projects/rocprofiler-sdk (rocpd output format).
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from gpulab.core.limits import TRACE_EVENTS
from gpulab.core.text import one_line
from gpulab.features.other_profilers.records import CALL, COPY, KERNEL, RANGE, Record, recordings
from gpulab.traces.recording import Recording

_WAL = b"\x02"
"""At byte 18 of a file whose journal is written ahead."""
_CUPTI = "CUPTI_ACTIVITY_KIND_"
_MARKS = {"ANALYSIS_DETAILS", "META_DATA_EXPORT", "EXPORT_META_DATA", f"{_CUPTI}RUNTIME"}
_OF_DEVICE = (
    (KERNEL, "KERNEL", "demangledName", ""),
    (KERNEL, "GRAPH_TRACE", "graphId", "CUDA graph "),
    (COPY, "MEMCPY", "copyKind", "Memcpy "),
    ("gpu_memset", "MEMSET", "", "Memset"),
)
"""Tables of CUPTI's activities, the column that names an event, and what comes before it."""
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
    except (sqlite3.Error, TypeError) as error:
        words = "an SQLite file that was not written to its end, or has columns of other types"
        raise ValueError(f"{words}: {one_line(str(error))}") from None


def _read(name: str, database: sqlite3.Connection) -> list[Recording]:
    there = [row[0] for row in database.execute("SELECT name FROM sqlite_master ORDER BY name")]
    if "rocpd_kernel_dispatch" in there:
        return recordings(name, _rocpd(database))
    if _MARKS.isdisjoint(there):
        named = ", ".join(there[:_MOST_TABLES]) or "none"
        raise ValueError(f"no export of Nsight Systems or rocprofv3; its tables: {named}")
    told = _rows(database, "DIAGNOSTIC_EVENT", "severity text")
    errors = (one_line(str(text)) for severity, text in told if severity == _ERROR)
    return recordings(name, _nsys(database), next(errors, ""))


def _rows(database: sqlite3.Connection, table: str, columns: str) -> Iterator[Any]:
    """Yield the rows of a table, None for columns that it does not have; none where it is not."""
    there = {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    names = ", ".join(f'"{each}"' if each in there else "NULL" for each in columns.split())
    if there:
        yield from database.execute(f"SELECT {names} FROM {table} LIMIT {TRACE_EVENTS + 1}")


def _nsys(database: sqlite3.Connection) -> Iterator[Record]:
    texts = dict(_rows(database, "StringIds", "id value"))
    for kind, table, naming, before in _OF_DEVICE:
        names = {"KERNEL": texts, "MEMCPY": _COPIES}.get(table, {})
        columns = f"start end globalPid streamId deviceId {naming}"
        for start, end, process, stream, device, *keys in _rows(database, _CUPTI + table, columns):
            name = before + "".join(str(names.get(key, key)) for key in keys)[:_MOST_LETTERS]
            yield Record(kind, name, start, end, _thread(process)[0], stream or 0, device or 0)
    threads = set()
    columns = "start end globalTid nameId"
    for start, end, thread, name in _rows(database, f"{_CUPTI}RUNTIME", columns):
        threads.add(thread)
        called = re.sub(r"_v\d+$", "", str(texts.get(name, name)))
        yield Record(CALL, called, start, end, *_thread(thread))
    for start, end, thread, name in _rows(database, "OSRT_API", columns):
        if thread in threads:  # others are the profiler's own, and the driver's
            called = f"OS runtime: {texts.get(name, name)}"
            yield Record("python_function", called, start, end, *_thread(thread))
    yield from _ranges(database, texts)


def _ranges(database: sqlite3.Connection, texts: dict[int, str]) -> Iterator[Record]:
    """Yield the ranges of NVTX, after the name of their domain; operations of torch's emit_nvtx are
    that.
    """
    columns = "eventType domainId text textId start end globalTid"
    rows = list(_rows(database, "NVTX_EVENTS", columns))
    domains = {row[1]: row[2] or texts.get(row[3]) for row in rows if row[0] == _DOMAIN}
    for kind, domain, text, number, start, end, thread in rows:
        name = str(text or texts.get(number, ""))
        if kind in _RANGES and name.startswith("aten::"):
            yield Record("cpu_op", name.partition(",")[0], start, end, *_thread(thread))
        elif kind in _RANGES:
            name = f"{domains[domain]}: {name}" if domains.get(domain) else name
            yield Record(RANGE, name, start, end, *_thread(thread))


def _thread(number: int | None) -> tuple[int, int]:
    """Process and thread of nsys's `globalTid`, or `globalPid`: 24 bits each, below the machine."""
    return (number or 0) >> 24 & 0xFFFFFF, (number or 0) & 0xFFFFFF


def _rocpd(database: sqlite3.Connection) -> Iterator[Record]:
    columns = "name start end pid stream_id agent_abs_index src_agent_abs_index dst_agent_abs_index"
    for view, kind in (("kernels", KERNEL), ("memory_copies", COPY)):
        for name, start, end, process, stream, *agents in _rows(database, view, columns):
            device = max(agent or 0 for agent in agents)  # processors come before GPUs
            yield Record(kind, name, start, end, process, stream or 0, device)
    columns = "name start end pid tid category"
    for name, start, end, process, thread, category in _rows(database, "regions", columns):
        if str(category).startswith("HIP"):
            yield Record(CALL, name, start, end, process, thread)
