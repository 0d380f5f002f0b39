"""Counters of kernels in files that Nsight Compute wrote: tables in CSV, and reports.

`python -P -m gpulab.features.counters.reading FILE` prints the kernels of a report as JSON, by the
package ncu-report. A process of its own: on a damaged file the package aborts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from gpulab.core.files import open_regular, read_regular
from gpulab.core.limits import TRACE_BYTES
from gpulab.features.counters.metrics import (
    Advice,
    CountedKernel,
    counted_kernel,
    grouped,
    short_text,
)
from gpulab.features.counters.tables import HEADER, factor_of, kernels_of
from gpulab.proc.spawn import HangsError, capture

ENDINGS = (".csv", ".ncu-rep")
_REPORT = b"NVR\0"
_HEAD_BYTES, _LIMIT_S = 4 << 20, 120.0
"""ncu prints lines on its progress before a table."""
_SCOPES = ("", "local", "global")


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
    return data.decode("utf-8-sig", errors="replace")


def _of_report(path: Path) -> list[CountedKernel]:
    if find_spec("ncu_report") is None:
        raise ValueError(
            "a report of ncu is read by a package of NVIDIA's: pip install ncu-report; or export "
            f"it: ncu --import {path.name} --page raw --csv"
        )
    with suppress(HangsError, msgspec.MsgspecError):
        done = capture([sys.executable, "-P", "-m", __name__, str(path)], _LIMIT_S)
        if kernels := msgspec.json.decode(done.output, type=list[CountedKernel]):
            return kernels
    raise ValueError(
        "ncu-report finds no kernel in it: it is cut short, damaged, or of a newer ncu "
        "(pip install -U ncu-report)"
    )


def _kernel(action: Any) -> CountedKernel:
    raw = {}
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        value = metric.value() if metric else None
        if isinstance(value, (int, float)):
            raw[name] = value * factor_of(metric.unit())
    grid, block = (
        tuple(int(raw.get(f"launch__{what}_dim_{axis}", 0)) for axis in "xyz")
        for what in ("grid", "block")
    )
    state = action.nvtx_state()
    domains = [state.domain_by_id(number) for number in state.domains()] if state else []
    ranges = ":".join(name for domain in domains for name in domain.start_end_ranges())
    name = action.name(action.NameBase_DEMANGLED)
    return counted_kernel(name, (str(grid), str(block)), raw, _advice(action), ranges)


def _advice(action: Any) -> Iterator[Advice]:
    for rule in action.rule_results_as_dicts():
        if (estimate := rule.get("speedup_estimation")) and estimate["speedup"]:
            yield Advice(
                rule=short_text(rule["rule_identifier"]),
                text=short_text(rule["rule_message"]["message"], 1000),
                percent=estimate["speedup"],
                scope=_SCOPES[int(estimate["type"])],
            )


if __name__ == "__main__":
    import ncu_report

    actions = (action for each in ncu_report.load_report(sys.argv[1]) for action in each)
    sys.stdout.buffer.write(msgspec.json.encode([_kernel(action) for action in actions]))
