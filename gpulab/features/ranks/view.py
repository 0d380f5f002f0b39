"""The ranks of each variant side by side."""

from __future__ import annotations

from gpulab.core.units import byte_count, seconds
from gpulab.draw.blocks import Block, columns_table
from gpulab.draw.table import first_and_last
from gpulab.features.ranks.result import RankReport
from gpulab.report.report import RunReport


def ranks(report: RunReport) -> Block | None:
    """A row a variant, a column a rank; None where there is only one."""
    known = [variant for variant in report.variants if len(variant.ranks) > 1]
    if not known:
        return None
    table = columns_table()
    table.add_column("time/step of each rank", overflow="fold", min_width=7)
    for rank in first_and_last(known[0].ranks):
        table.add_column(f"rank {rank.rank}", justify="right", no_wrap=True)
    for variant in known:
        table.add_row(variant.name, *map(_cell, first_and_last(variant.ranks)))
    return table


def _cell(rank: RankReport) -> str:
    parts = [seconds(rank.time_s)]
    if rank.memory_bytes is not None:
        parts.append(byte_count(rank.memory_bytes))
    if rank.sm_mhz is not None:
        parts.append(f"{rank.sm_mhz:,.0f} MHz")
    if rank.power_w is not None:
        parts.append(f"{rank.power_w:.0f} W")
    return ", ".join(parts)
