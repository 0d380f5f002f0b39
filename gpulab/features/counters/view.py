"""What ncu counted, in tables: each variant, its kernels that take longest, and what differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, log

from gpulab.core.payloads import KernelCode
from gpulab.core.text import plain, short_name
from gpulab.core.units import byte_count, plural, rate, seconds, times
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.draw.canvas import fit
from gpulab.features.counters.metrics import METRICS, CountedKernel, Metric
from gpulab.features.counters.reading import CounterFile
from gpulab.report.report import RunReport

_MOST_KERNELS, _MOST_OF_FILE = 3, 10
_DIFFERS = 1.1
_PARTS = ("dram_read_bytes", "dram_write_bytes")
"""What is compared as their sum."""
_SHOWN: dict[str, Callable[[float], str]] = {
    "s": seconds,
    "byte": byte_count,
    "count": lambda count: rate(count) if count else "0",
    "%": "{:.0f}".format,
    "ratio": "{:.3g}".format,
}
"""How a value of each unit is written."""
_LEGEND = (
    "SM, memory, occupancy, hit rates, tensor pipe: %; ld, st: 32-byte sectors a global load, "
    "store; conflicts: of shared loads"
)
_HOW = (
    "of one step; time, bytes and counts are sums, all else is the mean over the time of its "
    "kernels; ncu runs each kernel alone and with empty caches"
)


def counters(report: RunReport) -> Block | None:
    """The counters of a run's variants; None where nothing was counted."""
    counted = [(variant, variant.counters) for variant in report.variants if variant.counters]
    if not counted:
        return None
    rows = [(variant.name, found.together.metrics) for variant, found in counted]
    first, before = rows[0]
    lines = [f"{name} against {first}: {_differences(before, after)}" for name, after in rows[1:]]
    ratios = [
        f"{variant.name} {times(found.dram_of_declared)}"
        for variant, found in counted
        if found.dram_of_declared is not None
    ]
    if ratios:
        lines.append(f"DRAM bytes counted, over those declared: {', '.join(ratios)}")
    blocks: list[Block] = [_table("counters", rows), *(Text(plain(line)) for line in lines), ""]
    for variant, found in counted:
        codes = variant.get("kernels") or ()
        if len(found.kernels) == 1:  # whose row is that of the variant
            blocks += _said_of(found.kernels[0], f"{variant.name}:", codes)
        else:
            blocks += _kernels(f"kernels of {variant.name}", found.kernels, _MOST_KERNELS, codes)
    return Group(*blocks, Text(f"{_LEGEND}; {_HOW}", "dim"))


def counted_files(files: Sequence[CounterFile]) -> Block:
    """The kernels of files; of two the same kernels side by side."""
    blocks: list[Block] = []
    for file in files:
        blocks += [*_kernels(f"counters of {file.file}, by ncu", file.kernels, _MOST_OF_FILE), ""]
    if len(files) == 2:
        blocks += [*(Text(plain(line)) for line in _compared(*files)), ""]
    return Group(*blocks, Text(_LEGEND, "dim"))


def _compared(first: CounterFile, second: CounterFile) -> Iterator[str]:
    """Yield what differs between kernels of one name, of several the longest."""
    yield f"{second.file} against {first.file}:"
    others = {kernel.name: kernel for kernel in reversed(second.kernels)}
    for kernel in first.kernels:
        same = others.pop(kernel.name, None)
        found = f"in {first.file} alone"
        if same is not None:
            found = _differences(kernel.metrics, same.metrics)
        yield f"{short_name(kernel.name)}: {found}"
    yield from (f"{short_name(name)}: in {second.file} alone" for name in others)


def _differences(first: Mapping[str, float], second: Mapping[str, float]) -> str:
    """Return the counters that differ by more than a small factor, the largest factor first."""
    found = []
    for metric in METRICS:
        before, after = first.get(metric.key), second.get(metric.key)
        if before is None or after is None or before == after or metric.key in _PARTS:
            continue
        if metric.unit == "%" and abs(after - before) < 1:
            continue
        if not before or not after:
            words = f"{metric.label} {_cell(metric, before)} → {_cell(metric, after)}"
            found.append((inf, words))
        elif not 1 / _DIFFERS < after / before < _DIFFERS:
            found.append((abs(log(after / before)), f"{metric.label} {times(after / before)}"))
    said = [words for _, words in sorted(found, key=lambda each: -each[0])]
    return ", ".join(said) or f"no counter differs by more than {_DIFFERS - 1:.0%}"


def _table(head: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> Table:
    """Counters in the columns that some row has."""
    known = {key for _, metrics in rows for key in metrics}
    shown = [metric for metric in METRICS if metric.head != "-" and metric.key in known]
    table = columns_table(gap=1)
    table.add_column(head, overflow="fold")
    for metric in shown:
        table.add_column(metric.head, justify="right", no_wrap=True)
    for name, metrics in rows:
        cells = [_cell(metric, metrics.get(metric.key)) for metric in shown]
        table.add_row(Text(plain(name)), *cells)
    return table


def _cell(metric: Metric, value: float | None) -> str:
    """A value; empty where it was not counted."""
    return "" if value is None else _SHOWN[metric.unit](value)


def _kernels(
    head: str, kernels: Sequence[CountedKernel], most: int, codes: Sequence[KernelCode] = ()
) -> Iterator[Block]:
    """Yield a row for each kernel that takes longest, and below what is said of each."""
    shown = kernels[:most]
    yield Text(plain(head), "bold")
    yield _table("", [(str(number), kernel.metrics) for number, kernel in enumerate(shown, 1)])
    for number, kernel in enumerate(shown, 1):
        yield from _said_of(kernel, str(number), codes)
    rest = kernels[most:]
    if rest:
        rest_s = sum(kernel.duration_s for kernel in rest)
        yield Text(f"{plural(len(rest), 'more kernel')}: {seconds(rest_s)}", "dim")


def _said_of(kernel: CountedKernel, label: str, codes: Sequence[KernelCode]) -> Iterator[Block]:
    """Yield what a kernel waits for, what its code says, and ncu's own advice."""
    said = [f"{label} {fit(short_name(kernel.name), 60)}"]
    if kernel.launches > 1:
        said.append(plural(kernel.launches, "launch"))
    if "dram_bytes" in kernel.metrics and kernel.duration_s:
        said.append(f"{rate(kernel.metrics['dram_bytes'] / kernel.duration_s)}B/s of DRAM")
    total = sum(kernel.stalls.values())
    most = sorted(kernel.stalls.items(), key=lambda stall: -stall[1])[:2]
    stalls = [
        f"{reason.replace('_', ' ')} {samples / total:.0%}" for reason, samples in most if samples
    ]
    if stalls:
        said.append(f"stalls: {' and '.join(stalls)}")
    yield Text(plain(", ".join(said)))
    for code in codes:
        if _base_name(code.name) == _base_name(kernel.name) and (read := _read_from_code(code)):
            yield Text(f"  in its code: {read}")
    for advice in kernel.advice[:2]:
        of = "" if advice.scope == "global" else " of a part of it"
        words = f"  ncu's estimate: {advice.percent:.0f} %{of}, {advice.rule}: {advice.text}"
        yield Text(plain(words), "dim", no_wrap=True, overflow="ellipsis")


def _base_name(name: str) -> str:
    """A kernel's name without its type, templates and arguments, which are written in two ways."""
    return re.split(r"[<(]", name)[0].rpartition(" ")[2]


def _read_from_code(code: KernelCode) -> str:
    """What the compiled code alone says of its accesses to memory."""
    said = []
    if code.load_use is not None:
        said.append(f"loads use {code.load_use:.0%} of their sectors")
    if code.store_use is not None:
        said.append(f"stores use {code.store_use:.0%}")
    if code.bank_conflicts is not None:
        said.append(f"shared memory in {plural(code.bank_conflicts, 'pass')}")
    return ", ".join(said)
