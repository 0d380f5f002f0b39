"""What is read of a kernel's counters, by whatever name ncu has for it, and how kernels add up.

Names are of Nsight Compute 2021 to 2026 (`ncu --query-metrics`, Profiling Guide).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import mul
from typing import NamedTuple

import msgspec

from gpulab.core.text import cut, one_line, plain
from gpulab.core.values import Line, Name, Number, PositiveCount, Text

SUMMED = ("s", "byte", "count")
"""Units that add up; of percent and ratios the mean counts. A ratio of 0 had nothing to divide."""
_LINES = """
load_sectors | ratio | ld | sectors a load | l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio; l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum / l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
store_sectors | ratio | st | sectors a store | l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio; l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum / l1tex__t_requests_pipe_lsu_mem_global_op_st.sum
load_conflicts | count | conflicts | load bank conflicts | l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum
store_conflicts | count | - | store bank conflicts | l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum
dram_bytes | byte | DRAM | DRAM bytes | dram__bytes.sum; dram__bytes_read.sum + dram__bytes_write.sum; dram__bytes_op_read.sum + dram__bytes_op_write.sum
instructions | count | inst | warp instructions | smsp__inst_executed.sum; sm__inst_executed.sum
tensor_percent | % | tensor | tensor pipe | sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active; sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active
occupancy_percent | % | occ | occupancy | sm__warps_active.avg.pct_of_peak_sustained_active
l1_hit_percent | % | L1 | L1 hit rate | l1tex__t_sector_hit_rate.pct
l2_hit_percent | % | L2 | L2 hit rate | lts__t_sector_hit_rate.pct
memory_percent | % | mem | memory throughput | gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed
sm_percent | % | SM | SM throughput | sm__throughput.avg.pct_of_peak_sustained_elapsed
duration_s | s | time | time | gpu__time_duration.sum
"""  # noqa: E501
"""What tells most about a kernel comes first, what follows from it last."""
_MOST = 1e18
_STALL = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+)(?<!_not_issued)$")
_RANGE = re.compile(r'gpulab:([^:"]+)')


class Metric(NamedTuple):
    """A metric: its key, unit, the head of its column (- where it has none), its words, and ncu's
    names, of which two may be added or divided.
    """

    key: str
    unit: str
    head: str
    label: str
    names: tuple[str, ...]


def _metric(line: str) -> Metric:
    key, unit, head, label, names = line.split(" | ")
    return Metric(key, unit, head, label, tuple(names.split("; ")))


METRICS = tuple(_metric(line) for line in _LINES.strip().splitlines())
COUNTED = (*(each.names[0] for each in METRICS), "group:smsp__pcsamp_warp_stall_reasons")
"""What ncu is asked for: 13 passes of each kernel on an H200."""


class Advice(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule of ncu's own says. `percent` is its estimate of what could be gained, of the
    kernel's time where the scope is `global`, else of a part of it.
    """

    rule: Name
    text: Text
    percent: Number
    scope: Name = ""


class CountedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """Launches of one kernel with one grid and block: its metrics by their keys, sums of all
    launches or means over their time. What was not counted is not there.

    `stalls` has the samples of warps by what they waited for, without those that were selected to
    issue. `range`: of a report by `--ncu` the variant, of gpulab.step() the word step.
    """

    name: Line
    range: Name = ""
    grid: Name = ""
    block: Name = ""
    launches: PositiveCount = 1
    metrics: dict[Name, Number] = {}
    stalls: dict[Name, Number] = {}
    advice: list[Advice] = []

    @property
    def duration_s(self) -> float:
        return self.metrics.get("duration_s", 0.0)


def counted_kernel(
    name: str,
    size: tuple[str, str],
    raw: Mapping[str, float],
    advice: Iterable[Advice] = (),
    ranges: str = "",
) -> CountedKernel:
    """A launch by ncu's own metrics in base units (s, byte, byte/s, %), its grid and block, and the
    NVTX ranges that it started in.
    """
    raw = {key: value for key, value in raw.items() if abs(value) < _MOST}  # and no NaN
    known = [each for each in advice if 0 < each.percent <= 100]
    stalls = {match[1]: value for key, value in raw.items() if (match := _STALL.match(key))}
    stalls.pop("selected", None)
    found = _RANGE.findall(ranges)
    return CountedKernel(
        # ncu cuts namespaces off, and sometimes a bracket more
        name=short_text(re.sub("<?unnamed>", "(anonymous namespace)", name), 500),
        range=short_text(next((each for each in found if each != "step"), "".join(found[:1]))),
        grid=short_text(size[0]),
        block=short_text(size[1]),
        metrics=_metrics(raw),
        stalls=stalls,
        advice=sorted(known, key=lambda each: (each.scope != "global", -each.percent)),
    )


def short_text(text: str, most: int = 100) -> str:
    """A text of a file on one line of so many characters."""
    return cut(one_line(plain(text)), most)


def _metrics(raw: Mapping[str, float]) -> dict[str, float]:
    found = {}
    for metric in METRICS:
        known = [name.split() for name in metric.names if raw.keys() >= {*name.split()[::2]}]
        value = _value(known[0], raw) if known else None
        if value is not None and (value or metric.unit != "ratio"):
            found[metric.key] = value
    return found


def _value(names: Sequence[str], raw: Mapping[str, float]) -> float | None:
    first, *others = (raw[name] for name in names[::2])
    if "/" in names:
        return first / others[0] if others[0] else None
    return first + sum(others)


def grouped(kernels: Iterable[CountedKernel]) -> list[CountedKernel]:
    """Launches of the same kernel, range, grid and block as one, the longest first."""
    groups = defaultdict(list)
    for kernel in kernels:
        groups[kernel.range, kernel.name, kernel.grid, kernel.block].append(kernel)
    merged = [together(group) for group in groups.values()]
    return sorted(merged, key=lambda kernel: kernel.duration_s, reverse=True)


def together(kernels: Sequence[CountedKernel]) -> CountedKernel:
    """Several kernels as one of the first one's name: sums, and means weighted by time. A metric
    that some kernel lacks is missing, but for a ratio, which is of those that have it.
    """
    metrics = {}
    for metric in METRICS:
        having = [kernel for kernel in kernels if metric.key in kernel.metrics]
        if not having or (len(having) < len(kernels) and metric.unit != "ratio"):
            continue
        weights = [1.0] * len(having)
        if metric.unit not in SUMMED:
            times_s = [kernel.duration_s or 1.0 for kernel in having]
            weights = [time_s / sum(times_s) for time_s in times_s]
        values = (kernel.metrics[metric.key] for kernel in having)
        metrics[metric.key] = sum(map(mul, values, weights))
    stalls: dict[str, float] = defaultdict(float)
    for reason, samples in chain.from_iterable(kernel.stalls.items() for kernel in kernels):
        stalls[reason] += samples
    launches = sum(kernel.launches for kernel in kernels)
    return msgspec.structs.replace(
        kernels[0], launches=launches, metrics=metrics, stalls=dict(stalls)
    )
