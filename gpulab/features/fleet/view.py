"""A fleet as a table: medians of its figures, then its outliers with their cause."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.core.units import plural, rate, span, times
from gpulab.draw.table import columns_table
from gpulab.features.fleet.report import Figure, FleetReport, GpuReport, Resource
from gpulab.report.sentences import sentence

_MOST_SKIPPED, _MOST_FIGURES, _MOST_GPUS = 10, 12, 20


def fleet_view(report: FleetReport, *, verbose: bool = False) -> RenderableType:
    """The answer, the outliers, the medians, and the files that were skipped; with `verbose` every
    GPU and every figure.
    """
    parts: list[RenderableType] = [_headline(report)]
    shown = report.gpus if verbose else report.outliers[:_MOST_GPUS]
    if shown:
        parts += ["", _gpus(shown, whole_names=verbose)]
    if len(shown) < len(report.outliers):
        parts.append(Text(f"and {len(report.outliers) - len(shown)} more: --verbose", "dim"))
    if report.figures:
        figures = report.figures if verbose else _widest(report.figures)
        parts += ["", _figures(figures)]
        if len(figures) < len(report.figures):
            left = plural(len(report.figures) - len(figures), "figure")
            parts.append(Text(f"and {left} more: --verbose", "dim"))
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
    text = Text(
        f"{gpus} on {plural(report.hosts, 'host')}, {plural(report.files, 'run file')}: ", "bold"
    )
    if report.reason:
        return text.append(sentence(report.reason), "bold yellow")
    outliers = report.outliers
    if outliers:
        text.append(plural(len(outliers), "outlier"), "bold red")
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
        resource = gpu.slowest or _lowest(gpu)
        ratio = gpu.ratios.get(resource) if resource else None
        table.add_row(
            gpu.host,
            gpu.uuid if whole_names else _short(gpu.uuid),
            times(ratio.ratio) if ratio else "n/a",
            span(ratio.low, ratio.high) if ratio else "",
            resource or "",
            Text(sentence(gpu.cause) if gpu.cause else "", "red" if gpu.outlier else ""),
        )
    return table


def _short(uuid: str) -> str:
    """The first part of a UUID, which tells the GPUs of a host apart."""
    first_part = re.match("(GPU|MIG)-[0-9a-f]{8}", uuid)
    return first_part[0] if first_part else uuid


def _lowest(gpu: GpuReport) -> Resource | None:
    return min(gpu.ratios, key=lambda resource: gpu.ratios[resource].ratio, default=None)


def _widest(figures: Sequence[Figure]) -> list[Figure]:
    """Those of scenarios first: of ceilings there are many."""
    by_use = sorted(figures, key=lambda figure: figure.scenario == "ceilings")
    return by_use[:_MOST_FIGURES]


def _figures(figures: Sequence[Figure]) -> Table:
    several = len({figure.model for figure in figures}) > 1
    table = columns_table()
    if several:
        table.add_column("model", overflow="fold")
    table.add_column("figure", overflow="fold")
    table.add_column("limited by", no_wrap=True)
    for head in ("GPUs", "median", "MAD"):
        table.add_column(head, justify="right", no_wrap=True)
    for figure in figures:
        cells = [figure.model] if several else []
        table.add_row(
            *cells,
            f"{figure.scenario}: {figure.name}",
            figure.resource,
            f"{figure.gpus:,}",
            _rate(figure.median, figure.unit),
            f"{figure.mad / figure.median:.1%}" if figure.median else "",
        )
    return table


def _rate(value: float, unit: str) -> str:
    if unit.startswith("1/"):
        return f"{rate(value)} {unit[1:]}"
    number, _, prefix = rate(value).partition(" ")
    space = " " if unit[0].islower() and prefix else ""
    return f"{number} {prefix}{space}{unit}"
