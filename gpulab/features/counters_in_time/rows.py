"""The rows of the picture, the counters that they are made of, and samples as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

_READ, _WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
_BUSY, _ELAPSED = "sm__cycles_active.avg", "sm__cycles_elapsed.avg"
_OF_PEAK = "_cycles_active.avg.pct_of_peak_sustained_elapsed"
_SECTOR_BYTES = 32
POINTS = 200
"""The most that a row keeps."""
_FEWEST = 20
"""Samples below which more than one step is shown."""
_SLACK_NS = 200_000
"""Clocks of the host and of samples agree within this."""


@dataclass(frozen=True)
class Row:
    """One row: the counter, and what its value is multiplied by. `over` is the counter that it is a
    share of; without one and not in `bytes` it is in per cent.
    """

    label: str
    metric: str
    scale: float = 1.0
    over: str = ""
    bytes: bool = False


ROWS: Mapping[str, Row] = {
    "dram_read": Row("DRAM read", _READ, bytes=True),
    "dram_write": Row("DRAM write", _WRITTEN, bytes=True),
    "l2": Row("L2 sectors", "lts__t_sectors.sum", _SECTOR_BYTES, bytes=True),
    "sm_active": Row("SM active", _BUSY, over=_ELAPSED),
    "tensor": Row("tensor pipe", f"sm__pipe_tensor{_OF_PEAK}", 0.01),
    "fma": Row("FMA pipe", f"sm__pipe_fma{_OF_PEAK}", 0.01),
    "pcie_read": Row("PCIe read", "pcie__read_bytes.sum", bytes=True),
    "pcie_write": Row("PCIe write", "pcie__write_bytes.sum", bytes=True),
}
DRAM = ("dram_read", "dram_write")
_SECOND = ROWS["fma"].metric
SETS = (
    (*(row.metric for row in ROWS.values() if row.metric != _SECOND), _ELAPSED),
    (_READ, _WRITTEN, _SECOND),
)
"""What one pass can sample: the FMA pipe does not go with the cycles of the SMs."""

Sample = Sequence[float]
"""Its start and end in ns, and a value of each metric."""


@dataclass(frozen=True)
class Samples:
    """The samples of one pass over `steps` steps, which ran from `begin_ns` to `end_ns`."""

    metrics: Sequence[str]
    samples: Sequence[Sample]
    begin_ns: int
    end_ns: int
    steps: int

    @property
    def during(self) -> list[Sample]:
        """Those of the steps, by the time since they began: in seconds since 1970 a float has no
        better than 256 ns. The first of a pass begins at 0, and is none.
        """
        relative = [
            (start - self.begin_ns, end - self.begin_ns, *values)
            for start, end, *values in self.samples
        ]
        latest = self.end_ns - self.begin_ns + _SLACK_NS
        return [each for each in relative if each[0] >= -_SLACK_NS and each[1] <= latest]

    def rows(self) -> tuple[float, dict[str, list[float]]]:
        """Seconds in the middle of the steps, a whole number of them, and each row's values."""
        step_ns = (self.end_ns - self.begin_ns) / self.steps
        samples = self.during
        interval_ns = samples[0][1] - samples[0][0]
        shown = min(self.steps, max(1, ceil(_FEWEST * interval_ns / step_ns)))
        low = (self.steps - shown) // 2 * step_ns
        high = low + shown * step_ns
        bins = min(POINTS, max(1, round((high - low) / interval_ns)))
        width_ns = (high - low) / bins
        columns = {
            metric: spread([(*each[:2], each[place]) for each in samples], low, high, bins)
            for place, metric in enumerate(self.metrics, 2)
        }
        lengths = spread([(*each[:2], each[1] - each[0]) for each in samples], low, high, bins)
        rows = {}
        for name, row in ROWS.items():
            if row.metric not in columns or (row.over and row.over not in columns):
                continue
            if row.bytes:
                over = [width_ns * 1e-9] * bins
            elif row.over:
                over = columns[row.over]
            else:
                over = lengths
                timed = [(*e[:2], e[self._at(row)] * (e[1] - e[0])) for e in samples]
                columns[row.metric] = spread(timed, low, high, bins)
            rows[name] = [
                row.scale * value / each if each else 0.0
                for value, each in zip(columns[row.metric], over, strict=True)
            ]
        return (high - low) * 1e-9, rows

    def per_step(self) -> dict[str, float]:
        """The bytes of a step by row, over all of the steps."""
        return {
            name: row.scale * sum(each[self._at(row)] for each in self.during) / self.steps
            for name, row in ROWS.items()
            if row.bytes and row.metric in self.metrics
        }

    def _at(self, row: Row) -> int:
        return 2 + self.metrics.index(row.metric)


def spread(amounts: Sequence[Sample], low: float, high: float, bins: int) -> list[float]:
    """Amounts (start, end, amount) in bins from low to high: what lies in several is divided by
    time, so that their sum stays.
    """
    width = (high - low) / bins
    sums = [0.0] * bins
    for start, end, amount in amounts:
        first = max(0, int((start - low) // width))
        last = min(bins - 1, int((end - low) // width))
        for place in range(first, last + 1):
            left = low + place * width
            overlap = min(end, left + width) - max(start, left)
            sums[place] += amount * max(0.0, overlap) / (end - start)
    return sums
