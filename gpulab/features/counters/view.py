"""What ncu counted, in tables: each variant, its kernels that take longest, and what differs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf

from gpulab.core.payloads import KernelCode
from gpulab.core.text import plain, short_name
from gpulab.core.units import byte_count, plural, rate, seconds, times
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.draw.canvas import fit
from gpulab.features.counters.metrics import METRICS, SUMMED, CountedKernel, Metric
from gpulab.features.counters.reading import CounterFile
from gpulab.report.report import RunReport

_MOST_KERNELS, _MOST_FIGURES, _FEWEST_SAMPLES = 10, 5, 20
_DIFFERS, _POINTS, _FEW = 1.1, 5.0, 0.01
"""A smaller factor is none, nor are fewer points of percent; nor fewer conflicts than one in 100
instructions.
"""
_SHOWN: dict[str, Callable[[float], str]] = {
    "s": seconds,
    "byte": byte_count,
    "count": lambda count: rate(count) if count else "0",
    "%": "{:.0f}".format,
    "ratio": "{:.3g}".format,
}
"""How a value of each unit is written."""
_LEGEND = Text("tensor to SM: %; ld, st: 32-byte sectors a global load, store", "dim")
_HOW = Text("of a step: sums, or means over time; kernels ran alone, with empty caches", "dim")


def counters(report: RunReport) -> Block | None:
    """A row for each variant, and what tells the best from the first; None if none was counted."""
    rows = {each.name: each.counters.together.metrics for each in report.variants if each.counters}
    if not rows:
        return None
    first, *others = rows
    blocks: list[Block] = [_table("counters", rows)]
    if others:
        times_of = {variant.name: step.value for variant, step in report.timed}
        best = report.best or min(others, key=lambda name: times_of.get(name, inf))
        best = best if best in others else others[-1]
        found = _differences(rows[first], rows[best], _MOST_FIGURES)
        blocks.append(Text(f"{best} against {first}: {found}"))
    moved = {name: report.variant(name).counters.dram_of_declared for name in rows}
    ratios = [f"{name} {times(ratio)}" for name, ratio in moved.items() if ratio is not None]
    if ratios:
        blocks.append(Text(f"DRAM bytes over those declared: {', '.join(ratios)}"))
    return Group(*blocks, _LEGEND)


def kernels(report: RunReport) -> Block | None:
    """The kernels of each variant, and all that differs from the first."""
    counted = [variant for variant in report.variants if variant.counters]
    blocks: list[Block] = []
    for variant in counted:
        found = variant.counters
        blocks += _kernels(variant.name, found.kernels, variant.get("kernels") or ())
        if variant is not counted[0]:
            of_first = counted[0].counters.together.metrics
            differences = _differences(of_first, found.together.metrics)
            blocks.append(Text(f"  against {counted[0].name}: {differences}"))
    return Group(*blocks, _HOW) if blocks else None


def counted_files(files: Sequence[CounterFile]) -> Block:
    """The kernels of files; of two what differs between kernels of one name and variant, of several
    the longest.
    """
    blocks: list[Block] = []
    for file in files:
        blocks += [*_kernels(f"counters of {file.file}, by ncu", file.kernels), ""]
    if len(files) == 2:
        first, second = (
            {(each.name, each.range): each for each in reversed(file.kernels)} for file in files
        )
        blocks.append(Text(plain(f"{files[1].file} against {files[0].file}:")))
        for key, kernel in reversed({**second, **first}.items()):
            found = f"in {files[key not in first].file} alone"
            if key in first and key in second:
                found = _differences(kernel.metrics, second[key].metrics)
            blocks.append(Text(plain(f"{short_name(kernel.name)}: {found}")))
    return Group(*blocks, _LEGEND)


def _differences(
    first: Mapping[str, float], second: Mapping[str, float], most: int | None = None
) -> str:
    """Return the counters that differ by more than a small factor, in the order of the metrics."""
    found = []
    for metric in METRICS:
        before, after = first.get(metric.key), second.get(metric.key)
        if before is None or after is None:
            continue
        low, high = sorted((before, after))
        least = _POINTS if metric.unit == "%" else 0.0
        if metric.key.endswith("_conflicts"):
            least = _FEW * first.get("instructions", 0.0)
        if high <= low * _DIFFERS or high - low < least:
            continue
        words = f"{_cell(metric, before)} → {_cell(metric, after)}"
        if low and metric.unit in SUMMED:
            words = times(after / before)
        found.append(f"{metric.label} {words}")
    return ", ".join(found[:most]) or f"no counter differs by more than {_DIFFERS - 1:.0%}"


def _table(head: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    """Counters in the columns that some row has, time first."""
    known = {key for metrics in rows.values() for key in metrics}
    ordered = (METRICS[-1], *METRICS[:-1])
    shown = [metric for metric in ordered if metric.head != "-" and metric.key in known]
    table = columns_table(gap=1)
    table.add_column(head, overflow="fold")
    for metric in shown:
        table.add_column(metric.head, justify="right", no_wrap=True)
    for name, metrics in rows.items():
        table.add_row(plain(name), *(_cell(metric, metrics.get(metric.key)) for metric in shown))
    return table


def _cell(metric: Metric, value: float | None) -> str:
    """A value; empty where it was not counted."""
    return "" if value is None else _SHOWN[metric.unit](value)


def _kernels(
    head: str, kernels: Sequence[CountedKernel], codes: Sequence[KernelCode] | None = None
) -> Iterator[Block]:
    """Yield a row for each kernel that takes longest, and below what is said of each."""
    shown, rest = kernels[:_MOST_KERNELS], kernels[_MOST_KERNELS:]
    yield Text(plain(head), "bold")
    if codes is None or len(shown) > 1:  # whose row is that of the variant
        yield _table("", {str(place): kernel.metrics for place, kernel in enumerate(shown, 1)})
    for number, kernel in enumerate(shown, 1):
        yield from _said_of(kernel, str(number), codes)
    if rest:
        rest_s = sum(kernel.duration_s for kernel in rest)
        yield Text(f"{plural(len(rest), 'more kernel')}: {seconds(rest_s)}", "dim")


def _said_of(
    kernel: CountedKernel, label: str, codes: Sequence[KernelCode] | None
) -> Iterator[Block]:
    """Yield what a kernel waits for, what its code says, and ncu's own advice."""
    said = [f"{label} {fit(short_name(kernel.name), 60)}"]
    if codes is None and kernel.range:
        said.append(f"of {kernel.range}")
    if kernel.launches > 1:
        said.append(plural(kernel.launches, "launch"))
    if "dram_bytes" in kernel.metrics and kernel.duration_s:
        said.append(f"{rate(kernel.metrics['dram_bytes'] / kernel.duration_s)}B/s of DRAM")
    total = sum(kernel.stalls.values())
    most = sorted(kernel.stalls.items(), key=lambda stall: -stall[1])[:2]
    if total >= _FEWEST_SAMPLES:
        shares = (f"{each.replace('_', ' ')} {count / total:.0%}" for each, count in most if count)
        said.append(f"stalls: {' and '.join(shares)}")
    elif total:
        said.append(f"stalls: few samples ({total:.0f})")
    yield Text(plain(", ".join(said)))
    for code in codes or ():
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
    said = {
        "loads use {:.0%} of their sectors": code.load_use,
        "stores use {:.0%}": code.store_use,
        "shared memory {:d}-way": code.bank_conflicts,
    }
    return ", ".join(words.format(value) for words, value in said.items() if value is not None)
