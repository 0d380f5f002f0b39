"""Where the time of a step goes: a bar a variant with the words in it, from its phases, then from
its profile.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.units import plural_of, rate
from gpulab.draw import bars
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows, bands, name_width, style_of
from gpulab.features.goodput.view import parts_of, share, why_not_known
from gpulab.report.live import LiveReport

_ITEMS = 10
_WHY_NONE = "measured by the last stage, profile: computing, copies, waiting, launches"
_FEW = 4
"""Variants that may have two rows each."""


def _heading(run: LiveReport) -> tuple[str, str]:
    several = any(variant.items not in (None, 1.0) for variant in run.report.variants)
    summaries = [variant.goodput for variant in run.report.variants if variant.goodput]
    figure = ""
    if any(summary.goodput is not None for summary in summaries):
        figure = f"{plural_of(run.report.item)}/s" * several
    elif any(summary.phases for summary in summaries):
        figure = "as marked in the code"
    return "where the time goes", figure


def _rows(run: LiveReport, width: int) -> Rows:
    count = max(1, len(run.variants))
    most = 2 * count if count <= _FEW else count
    return Rows(min(count, 3), count, most, count)


def _draw(run: LiveReport, area: Area) -> None:
    report = run.report
    summaries = [variant.goodput for variant in report.variants if variant.goodput]
    if not any(summary.phases or summary.partition for summary in summaries):
        area.put_lines(_WHY_NONE)
        return
    names = name_width(run, area.width)
    several = any(variant.items not in (None, 1.0) for variant in report.variants)
    cells = max(8, area.width - names - 1 - (_ITEMS + 1) * several)
    shown = run.variants[: area.height]
    by_phases = bars.phases(
        [variant.goodput.phases if variant.goodput else {} for variant in shown]
    )
    places = bands(len(shown), area.height)
    for variant, parts, band in zip(shown, by_phases, places, strict=True):
        area.put(band.middle, 0, variant.name, style_of(variant.name, report.baseline), most=names)
        summary = variant.goodput
        if summary is None:
            continue
        if why := why_not_known(variant):
            area.put(band.middle, names + 1, f"not known: {why}", "yellow")
            continue
        if summary.goodput is not None:
            parts = parts_of(summary)
        _draw_parts(area.part(band.row, names + 1, cells, band.height), parts, share(summary))
        if several and variant.items_per_s:
            area.put_right(band.middle, f"{rate(variant.items_per_s)}/s")


def _draw_parts(area: Area, parts: Sequence[bars.StepPart], computing: str) -> None:
    """Draw the same bar in all rows, with words in the middle one."""
    for row in range(area.height):
        with_words = row == (area.height - 1) // 2
        bar = bars.parts_bar(parts, area.width, computing=computing, with_words=with_words)
        area.put_text(row, 0, bar)


_ABOUT = (
    "One bar is one step, from its start to its end, cut by what the time went into. Computing is "
    "the work that the step is for, however well the device is used; the rest waits for data, "
    "copies, or is taken away by the system."
)
PARTS = Panel("where the time goes", _heading, _rows, _draw, _ABOUT, beside_variants=0)
