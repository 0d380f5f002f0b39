"""Files of other profilers than torch's, known by what is in them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TextIO

from gpulab.features.other_profilers.databases import read_database
from gpulab.features.other_profilers.records import recordings
from gpulab.features.other_profilers.rocprof import read_json
from gpulab.features.other_profilers.tables import TABLE, read_tables
from gpulab.traces.recording import Recording

ENDINGS = (".sqlite", ".db", "kernel_trace.csv", "cuda_gpu_trace.csv")
_HEAD_BYTES = 1 << 16
_NOT_EXPORTED = (".nsys-rep", ".qdrep", ".qdstrm")
_ROCPROF = re.compile(
    r'^\s*\{\s*"rocprofiler-sdk-tool"|"name":\s*"(CPU HIP API|COPY|GPU\d+)"\s*\},\s*"ph":\s*"M"'
)


def files_in(folder: Path) -> list[Path]:
    """Return those of a folder that have a timeline; tables beside one are read with it."""
    return [file for file in folder.iterdir() if file.name.endswith(ENDINGS)]


def read(path: Path, text: TextIO) -> list[Recording] | None:
    """Return what is in a file of Nsight Systems or rocprof; None where it is neither's, and the
    file at its start. ValueError, OSError.
    """
    file = text.buffer
    if path.suffix in _NOT_EXPORTED:
        shown, exported = (shlex.quote(str(each)) for each in (path, path.with_suffix(".sqlite")))
        how = f"nsys export --type sqlite --output {exported} {shown}, then gpulab --why {exported}"
        raise ValueError(f"a report of Nsight Systems that was not exported: {how}")
    if path.suffix == ".pftrace":
        raise ValueError("a trace of Perfetto: rocprofv3 --output-format json writes what is read")
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if head.startswith(b"SQLite format 3\0"):
        return read_database(path, head)
    begin = head.decode("utf-8-sig", errors="replace")
    if _ROCPROF.search(begin):
        return recordings(path.name, read_json(file))
    if begin.lstrip()[:1] not in ("", "{", "[") and (path.suffix == ".csv" or TABLE.search(begin)):
        return read_tables(path)
    return None
