"""The rows of the picture, the counters that they are made of, and samples as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_READ, _WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
_ELAPSED = "sm__cycles_elapsed.avg"
_OF_PEAK = "_cycles_active.avg.pct_of_peak_sustained_elapsed"
_SECTOR_BYTES = 32
_SLACK_NS = 200_000
"""Clocks of the host and of samples agree within this."""


@dataclass(frozen=True)
class Row:
    """A row: its counter, and the bytes of one or 0. `over`: the counter that it is a share of;
    with neither it is in per cent. `copied`: the copy that counts just these bytes, or none.
    """

    label: str
    metric: str
    bytes: int = 0
    over: str = ""
    copied: str = ""


ROWS: Mapping[str, Row] = {
    "dram_read": Row("DRAM read", _READ, 1, copied="inside"),
    "dram_write": Row("DRAM write", _WRITTEN, 1, copied="inside"),
    # a copy is no truth for it: sectors that cross from one partition to the other count twice
    "l2": Row("L2 sectors", "lts__t_sectors.sum", _SECTOR_BYTES),
    "sm_active": Row("SM active", "sm__cycles_active.avg", over=_ELAPSED),
    "tensor": Row("tensor pipe", f"sm__pipe_tensor{_OF_PEAK}"),
    "fma": Row("FMA pipe", f"sm__pipe_fma{_OF_PEAK}"),
    "pcie_read": Row("PCIe read", "pcie__read_bytes.sum", 1, copied="link"),
    "pcie_write": Row("PCIe write", "pcie__write_bytes.sum", 1, copied="link"),
}
_FMA = ROWS["fma"].metric
SETS = (
    [*(row.metric for row in ROWS.values() if row.metric != _FMA), _ELAPSED],
    [_READ, _WRITTEN, _FMA],
)
"""What one pass can sample: the FMA pipe does not go with the cycles of the SMs."""

Columns = Mapping[str, Sequence[float]]
"""By metric its value in each sample; also `START` and `END`, in ns since the steps began."""
START, END = "start", "end"


def columns(
    metrics: Sequence[str], samples: Sequence[Sequence[int]], begin_ns: int, took_ns: int
) -> Columns:
    """The samples of steps by their columns. A float has no better than 256 ns of the time since
    1970.
    """
    moved = [(start - begin_ns, end - begin_ns, *values) for start, end, *values in samples]
    during = [each for each in moved if each[0] >= -_SLACK_NS and each[1] <= took_ns + _SLACK_NS]
    return {name: [row[at] for row in during] for at, name in enumerate((START, END, *metrics))}


def rows_of(sampled: Columns, low: float, high: float, bins: int) -> dict[str, list[float]]:
    """The rows between two times in ns: bytes per second, or shares."""
    lengths = [end - start for start, end in zip(sampled[START], sampled[END], strict=True)]
    rows = {}
    for name, row in ROWS.items():
        if not {row.metric, row.over or row.metric} <= sampled.keys():
            continue
        amounts = sampled[row.metric]
        if not row.bytes and not row.over:
            amounts = [each * length / 100 for each, length in zip(amounts, lengths, strict=True)]
        above = spread(sampled, amounts, low, high, bins)
        below = spread(sampled, sampled.get(row.over, lengths), low, high, bins)
        scale = row.bytes * 1e9 or 1.0
        pairs = zip(above, below, strict=True)
        rows[name] = [float(f"{scale * a / b:.4g}") if b else 0.0 for a, b in pairs]
    return rows


def bytes_of(sampled: Columns, steps: int) -> dict[str, float]:
    """By row the bytes of one of so many steps."""
    moving = {name: row for name, row in ROWS.items() if row.bytes and row.metric in sampled}
    return {name: row.bytes * sum(sampled[row.metric]) / steps for name, row in moving.items()}


def spread(
    sampled: Columns, amounts: Sequence[float], low: float, high: float, bins: int
) -> list[float]:
    """Amounts of the samples in bins from low to high: one in several bins is divided by time, so
    that their sum stays.
    """
    width = (high - low) / bins
    sums = [0.0] * bins
    for start, end, amount in zip(sampled[START], sampled[END], amounts, strict=True):
        first, last = (int((each - low) // width) for each in (start, end))
        for place in range(max(0, first), min(bins - 1, last) + 1):
            left = low + place * width
            overlap = min(end, left + width) - max(start, left)
            sums[place] += amount * max(0.0, overlap) / (end - start)
    return sums
