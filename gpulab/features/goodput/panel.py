"""Where the time of a step goes: a bar a variant with the words in it, from its phases, then from
its profile.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.units import rate
from gpulab.draw import bars
from gpulab.draw.area import Area
from gpulab.draw.panel import Panel, Rows, bands, name_width, style_of
from gpulab.features.goodput.view import parts_of, share, sms_busy
from gpulab.report.live import LiveReport
from gpulab.report.report import RunReport

_FILLS = {"u": "█", "l": "░", "d": "░", "c": "▒", "s": "▒", "p": "▒", "b": "▓", "n": "▓", "a": "▒"}
_ITEMS = 9
_WHY_NONE = "known after the profile, the last stage"
_ROOM_FOR_WORDS = 2
_FEW = 4
"""Variants that may have two rows each."""


def _heading(run: LiveReport) -> tuple[str, str]:
    several = any(variant.items not in (None, 1.0) for variant in run.report.variants)
    figure = ""
    if _known(run.report) and not _profiled(run.report):
        figure = "as marked in the code"
    elif _known(run.report) and several:
        figure = "items/s"
    return "where the time goes", figure


def _rows(run: LiveReport, width: int) -> Rows:
    count = max(1, len(run.variants))
    most = 2 * count if count <= _FEW else count
    return Rows(min(count, 3), count, most, count)


def _known(report: RunReport) -> bool:
    return any(
        variant.goodput and (variant.goodput.phases or variant.goodput.partition)
        for variant in report.variants
    )


def _profiled(report: RunReport) -> bool:
    return any(
        variant.goodput and variant.goodput.goodput is not None for variant in report.variants
    )


def _draw(run: LiveReport, area: Area) -> None:
    report = run.report
    if not _known(report):
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
    for variant, phases, band in zip(shown, by_phases, places, strict=True):
        area.put(band.middle, 0, variant.name, style_of(variant.name, report.baseline), most=names)
        summary = variant.goodput
        if summary is None:
            continue
        profiled = summary.goodput is not None
        parts = parts_of(summary, sms_busy(variant)) if profiled else phases
        bar = area.part(band.row, names + 1, cells, band.height)
        _draw_parts(bar, parts, share(summary) if profiled else "")
        if several and variant.items_per_s:
            area.put_right(band.middle, rate(variant.items_per_s))


def _draw_parts(area: Area, parts: Sequence[bars.StepPart], goodput: str) -> None:
    """Cells in proportion, each part with its words in the middle where they fit."""
    end, placed = 0.0, 0
    for part in parts:
        end += part.share
        count = round(end * area.width) - placed
        if count <= 0:
            continue
        fill = _FILLS.get(part.letter, "·")
        value = goodput if part.letter == "u" and goodput else f"{part.share:.0%}"
        for row in range(area.height):
            area.put(row, placed, fill * count, part.style)
        for words in (f" {bars.WORDS.get(part.words, part.words)} {value} ", f" {value} "):
            if len(words) + _ROOM_FOR_WORDS <= count:
                start = placed + (count - len(words)) // 2
                area.put((area.height - 1) // 2, start, words, f"bold reverse {part.style}")
                break
        placed += count


_ABOUT = (
    "One bar is one step, from its start to its end, cut by what the time went into. Computing is "
    "the work that the step is for, however well the device is used; the rest waits for data, "
    "copies, or is taken away by the system."
)
PARTS = Panel("where the time goes", _heading, _rows, _draw, _ABOUT, beside_variants=0)
