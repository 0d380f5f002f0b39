"""Counters of kernels in files that Nsight Compute wrote: tables in CSV, and reports."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import msgspec

from gpulab.core.files import open_regular, read_regular
from gpulab.core.limits import TRACE_BYTES
from gpulab.features.counters.metrics import CountedKernel, grouped
from gpulab.features.counters.tables import HEADER, kernels_of
from gpulab.proc.spawn import HangsError, capture

ENDINGS = (".csv", ".ncu-rep")
_REPORT = b"NVR\0"
_HEAD_BYTES = 4 << 20
"""ncu prints lines on its progress before a table."""
_LIMIT_S = 120.0


class CounterFile(msgspec.Struct, frozen=True, kw_only=True):
    """The kernels of a file, the longest first."""

    file: str
    kernels: list[CountedKernel]


def is_counters(path: Path) -> bool:
    """Return whether a file is of ncu, by what it holds."""
    with suppress(OSError), open_regular(path) as file:
        head = file.read(_HEAD_BYTES)
        return head.startswith(_REPORT) or HEADER.search(_text(head)) is not None
    return False


def read(path: Path) -> CounterFile:
    """OSError; ValueError, whose message says what is wrong with the file."""
    data = read_regular(path, TRACE_BYTES)
    found = _of_report(path) if data.startswith(_REPORT) else kernels_of(_text(data))
    return CounterFile(file=path.name, kernels=grouped(found))


def _text(data: bytes) -> str:
    """PowerShell redirects into UTF-16."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    return data.decode(encoding, errors="replace")


def _of_report(path: Path) -> list[CountedKernel]:
    if find_spec("ncu_report") is None:
        raise ValueError(
            "a report of ncu is read by a package of NVIDIA's: pip install ncu-report; or export "
            f"it: ncu --import {path.name} --page raw --csv"
        )
    command = [sys.executable, "-P", "-m", "gpulab.features.counters.report_file", str(path)]
    kernels = []
    with suppress(HangsError, msgspec.MsgspecError):
        done = capture(command, _LIMIT_S)
        kernels = msgspec.json.decode(done.output, type=list[CountedKernel])
    if not kernels:
        raise ValueError(
            "ncu-report finds no kernel in it: it is cut short, damaged, or of a newer ncu "
            "(pip install -U ncu-report)"
        )
    return kernels
