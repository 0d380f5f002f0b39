"""What each variant needs of the device's memory, and where that is the lesson, drawn against its
time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpulab.core.statuses import Shows
from gpulab.core.units import byte_count, seconds, times
from gpulab.draw.blocks import Block, Group, Text, columns_table
from gpulab.draw.figure import Figure, Mark, letter_of, scale_around, style_of
from gpulab.report.report import RunReport


def memory(report: RunReport) -> Block | None:
    """A row a variant; None where nothing is known of it."""
    known = [
        (place, variant, variant.memory)
        for place, variant in enumerate(report.variants)
        if variant.memory and variant.memory.peak_bytes
    ]
    if not known:
        return None
    drawn = report.shows == Shows.MEMORY
    table = columns_table()
    table.add_column("memory of one variant alone", overflow="fold", min_width=7)
    on_gpu = any(needs.reserved_bytes is not None for _, _, needs in known)
    for head in ("peak", "held", *(["reserved"] if on_gpu else []), f"time/{report.per}"):
        table.add_column(head, justify="right", no_wrap=True)
    marks = []
    for place, variant, needs in known:
        time = variant.time_per(report.per)
        name = Text(f"{letter_of(place)} " if drawn else "", style_of(place))
        name.append(variant.name, "not bold default")
        reserved = "" if needs.reserved_bytes is None else byte_count(needs.reserved_bytes)
        shown = seconds(time.value) if time else ""
        sizes = [byte_count(needs.peak_bytes), byte_count(needs.held_bytes)]
        table.add_row(name, *sizes, *([reserved] if on_gpu else []), shown)
        if time:
            peak = float(needs.peak_bytes)
            marks.append(Mark(letter_of(place), "", time.value, peak, style_of(place)))
    parts: list[Block] = [table]
    if drawn and len(marks) > 1:
        parts += ["", _figure(marks, f"time per {report.per}", seconds)]
    return Group(*parts)


def _figure(marks: Sequence[Mark], name: str, label: Callable[[float], str]) -> Figure:
    x = scale_around(name, [mark.x for mark in marks], label)
    y = scale_around("peak memory", [mark.y for mark in marks], byte_count)
    return Figure("peak memory", x, y, marks=marks)


def memory_over(parameter: str, reports: Sequence[RunReport]) -> Block | None:
    """Show what a sweep about memory found: the peak of each variant at each value, drawn over it,
    and how it grows at the end.

    None where the values are no numbers, or fewer than two runs know the peak.
    """
    peaks: dict[str, list[tuple[float, int]]] = {}
    for report in reports:
        value = report.params.get(parameter)
        if report.shows == Shows.MEMORY and isinstance(value, (int, float)) and value > 0:
            for variant in report.variants:
                points = peaks.setdefault(variant.name, [])
                if variant.memory and variant.memory.peak_bytes:
                    points.append((value, variant.memory.peak_bytes))
    curves = {name: sorted(points) for name, points in peaks.items() if len(points) > 1}
    if not curves:
        return None
    table = columns_table()
    table.add_column(f"peak memory, {parameter}", justify="right", overflow="fold")
    marks = []
    for place, name in enumerate(peaks):
        if name in curves:
            table.add_column(f"{letter_of(place)} {name}", justify="right", overflow="fold")
            marks += [
                Mark(letter_of(place), "", value, float(peak), style_of(place))
                for value, peak in curves[name]
            ]
    peaks_at = {name: dict(points) for name, points in curves.items()}
    values = sorted({value for points in peaks_at.values() for value in points})
    for value in values:
        cells = [
            byte_count(points[value]) if value in points else "" for points in peaks_at.values()
        ]
        table.add_row(f"{value:g}", *cells)
    growths = [
        f"{name} {times(points[values[-1]] / points[values[-2]])}"
        for name, points in peaks_at.items()
        if values[-1] in points and values[-2] in points
    ]
    picture = _figure(marks, parameter, lambda value: f"{value:.3g}")
    growth = f"from {parameter}={values[-2]:g} to {values[-1]:g} it grows: {', '.join(growths)}"
    return Group(table, "", picture, Text(growth if growths else ""))
