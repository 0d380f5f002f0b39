"""A fleet as a table: its outliers with their cause, and the files that were skipped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpulab.core.units import interval, plural, times
from gpulab.draw.blocks import Block, Group, Table, Text, columns_table
from gpulab.features.fleet.report import FleetReport, GpuReport
from gpulab.report.sentences import sentence

_MOST_SKIPPED = 10


def fleet_view(report: FleetReport, *, verbose: bool = False) -> Block:
    """The answer, the outliers, and the files that were skipped; with `verbose` every GPU."""
    parts: list[Block] = [_headline(report)]
    gpus = report.gpus if verbose else report.outliers
    if gpus:
        parts += ["", _gpus(gpus, whole_names=verbose)]
    if report.skipped:
        parts.append("")
    skipped = report.skipped if verbose else report.skipped[:_MOST_SKIPPED]
    parts += [Text(f"skipped {file.file}: {file.reason}", "yellow") for file in skipped]
    if len(skipped) < len(report.skipped):
        left = plural(len(report.skipped) - len(skipped), "file")
        parts.append(Text(f"and {left} more: --verbose", "dim"))
    return Group(*parts)


def _headline(report: FleetReport) -> Text:
    gpus = plural(len(report.gpus), "GPU")
    hosts = plural(report.hosts, "host")
    text = Text(f"{gpus} on {hosts}, {plural(report.files, 'run file')}: ", "bold")
    if report.reason:
        return text.append(sentence(report.reason), "bold yellow")
    if report.outliers:
        text.append(plural(len(report.outliers), "outlier"), "bold red")
    else:
        text.append("no outlier", "bold green")
    alone = sum(not gpu.ratios and not gpu.outlier for gpu in report.gpus)
    if alone:
        text.append(f"; {plural(alone, 'GPU')} not compared: too few measured the same", "yellow")
    return text


def _gpus(gpus: Sequence[GpuReport], *, whole_names: bool) -> Table:
    table = columns_table()
    table.add_column("host", overflow="fold")
    table.add_column("GPU", overflow="fold")
    for head in ("ratio", "99 % interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("of", overflow="fold")
    table.add_column("cause", overflow="fold")
    for gpu in gpus:
        resource = gpu.slowest or gpu.lowest
        ratio = gpu.ratios.get(resource) if resource else None
        table.add_row(
            gpu.host,
            gpu.uuid if whole_names else _short(gpu.uuid),
            times(ratio.ratio) if ratio else "n/a",
            interval(ratio.ratio) if ratio else "",
            resource or "",
            Text(sentence(gpu.cause) if gpu.cause else "", "red" if gpu.outlier else ""),
        )
    return table


def _short(uuid: str) -> str:
    """The first part of a UUID, which tells the GPUs of a host apart."""
    first_part = re.match("(GPU|MIG)-[0-9a-f]{8}", uuid)
    return first_part[0] if first_part else uuid
