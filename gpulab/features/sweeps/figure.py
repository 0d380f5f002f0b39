"""The curve of a sweep: the time of each variant over a parameter."""

from __future__ import annotations

from collections.abc import Sequence

from gpulab.core.statuses import Per
from gpulab.draw.axis import tick_seconds
from gpulab.draw.figure import Figure, Line, Mark, Scale, letter_of, scale_around, style_of
from gpulab.report.report import RunReport
from gpulab.scenario import Param

_FAR_APART = 4
"""Values of a parameter that are so many times apart have a logarithmic axis."""


def curves_figure(reports: Sequence[RunReport], parameter: str = "") -> Figure:
    """Draw runs of one scenario that differ in one parameter: a curve a variant. ValueError of
    others.
    """
    parameter = parameter or _varied(reports)
    timed = [
        (report.params[parameter], variant)
        for report in reports
        for variant in report.variants
        if variant.time_s and parameter in report.params
    ]
    if not timed:
        raise ValueError("a curve is of runs that measured times")
    per = Per.ITEM if any((variant.items or 1) != 1 for _, variant in timed) else Per.STEP
    places = _places([value for value, _ in timed])
    lines, marks = [], []
    for place, name in enumerate(dict.fromkeys(variant.name for _, variant in timed)):
        points = sorted(
            (places[value], variant.time_per(per))
            for value, variant in timed
            if variant.name == name and variant.time_per(per)
        )
        style, letter = style_of(place), letter_of(place)
        medians = [(x, time.value) for x, time in points if time]
        lines.append(Line(medians, style=style))
        for number, (x, time) in enumerate(points):
            if time is not None:
                named = name if number == len(points) - 1 else ""
                marks.append(Mark(letter, named, x, time.value, style, *time.ends))
    labels = {place: str(value) for value, place in places.items()}
    ordered = sorted(labels)
    numbers = not any(isinstance(value, (str, bool)) for value in places)
    logarithmic = numbers and ordered[0] > 0 and ordered[-1] > _FAR_APART * ordered[0]
    room = 0.05 * (ordered[-1] - ordered[0]) or 1.0
    low, high = ordered[0] - room, ordered[-1] + room
    if logarithmic:
        low, high = ordered[0] / 1.2, ordered[-1] * 1.2

    def label(value: float) -> str:
        return labels.get(value, f"{value:g}")

    across = Scale(parameter, low, high, label, logarithmic, ordered)
    y = scale_around(f"time per {per}", [mark.y for mark in marks], tick_seconds)
    return Figure(f"time per {per} over {parameter}, logarithmic", across, y, lines, marks)


def _varied(reports: Sequence[RunReport]) -> str:
    """The one parameter in which runs differ."""
    if len({report.scenario for report in reports}) != 1:
        raise ValueError("a curve is of several runs of one scenario")
    names = dict.fromkeys(name for report in reports for name in report.params)
    varied = [name for name in names if len({report.params.get(name) for report in reports}) > 1]
    if len(varied) != 1:
        found = ", ".join(varied) or "none"
        raise ValueError(f"a curve is of runs that differ in one parameter; these in: {found}")
    return varied[0]


def _places(values: Sequence[Param]) -> dict[Param, float]:
    """Numbers lie where they are, others one beside the other."""
    distinct = list(dict.fromkeys(values))
    if any(isinstance(value, (str, bool)) for value in distinct):
        return {value: float(place) for place, value in enumerate(distinct)}
    return {value: float(value) for value in distinct}
