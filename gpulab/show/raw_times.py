"""Raw times, as other benchmarks show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median, quantiles, stdev

from gpulab.core.run_file import RunFileError
from gpulab.core.units import seconds
from gpulab.draw.blocks import Block, Table, Text, columns_table
from gpulab.report.report import RunReport

_HEADS = ("blocks", "steps", "min", "median", "mean", "std dev", "p5", "p95", "p99")


def raw_times(report: RunReport) -> Iterator[Block]:
    """Yield the distribution of the times of each variant, or why it is not known."""
    try:
        yield _table(report)
    except RunFileError as error:
        yield Text(str(error), "yellow")
        return
    yield Text(
        "raw: every block, disturbed ones too, per step. Not a basis for the verdict, which is of "
        "pairs of blocks within each process",
        "dim",
    )


def _table(report: RunReport) -> Table:
    """A row a variant: how many blocks, of how many steps, and the distribution of their times per
    step. RunFileError where the run file is gone.
    """
    table = columns_table(gap=1)
    table.add_column("raw times", overflow="fold", min_width=9)
    for head in _HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for variant in report.variants:
        times_s = report.samples(variant.name)
        if times_s:
            steps = str(variant.steps_per_block or "")
            table.add_row(variant.name, f"{len(times_s):,}", steps, *_distribution(times_s))
    return table


def _distribution(times_s: Sequence[float]) -> list[str]:
    if len(times_s) < 2:
        return [seconds(times_s[0])] * 3 + [""] * 4
    percentiles = quantiles(times_s, n=100, method="inclusive")
    figures = [min(times_s), median(times_s), fmean(times_s), stdev(times_s)]
    figures += [percentiles[share - 1] for share in (5, 95, 99)]
    return list(map(seconds, figures))
