"""The pictures of a page as SVG: times with their intervals, the roofline, where the time of a step
goes, what was sampled. Each says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from statistics import fmean

from gpulab.core.events import Telemetry
from gpulab.core.payloads import CACHE, MEASURED
from gpulab.core.statuses import Per
from gpulab.core.units import byte_count, percent_of_roof, plus_minus, rate, seconds
from gpulab.draw import bars
from gpulab.draw.canvas import fit
from gpulab.draw.chart import letter_of
from gpulab.draw.styles import STYLES
from gpulab.features.export.html import Html, element
from gpulab.features.export.record import Record
from gpulab.features.goodput.view import parts_of, share, sms_busy
from gpulab.features.roofline.axes import (
    BADGE,
    CEILING,
    DIM,
    NAME,
    Axes,
    Plot,
    RoofLine,
    axes_for,
    decade,
    family_roofs,
)
from gpulab.features.roofline.bound import Point, Roofline
from gpulab.features.roofline.plot import plot_of
from gpulab.features.telemetry.fields import FIELDS, PERCENT, rows
from gpulab.report.report import RunReport, Time, VariantReport
from gpulab.stats.verdicts import in_bar

WIDTH = 420
"""Units of every picture: on a telephone its text can still be read."""
_LETTER = 7.2
"""Of a text in a picture, which has one width for all."""
_SMALL = 6.0


def _picture(height: float, alternative: str, parts: Sequence[str]) -> Html:
    """`alternative`: what it shows, for whoever does not see it."""
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {round(height)}",
        role="img",
        aria_label=alternative,
    )


def _text(x: float, y: float, text: str, class_: str | None = None) -> Html:
    return element("text", text, x=x, y=y, class_=class_)


_FLAT = 0.25
"""Units of height that nobody sees."""


def _path(points: Sequence[tuple[float, float]], class_: str) -> Html:
    """Points between two of the same height are left out."""
    kept = [
        point
        for place, point in enumerate(points)
        if place in (0, len(points) - 1)
        or max(abs(point[1] - points[other][1]) for other in (place - 1, place + 1)) > _FLAT
    ]
    places = " ".join(f"{round(x, 1):g},{round(y, 1):g}" for x, y in kept)
    return element("polyline", points=places, class_=class_)


def _cells(width: float, letter: float = _LETTER) -> int:
    return max(0, int(width / letter))


_ROW, _BAR = 44, 12
_MOST_DOTS = 48


def times_picture(record: Record) -> Html | None:
    """A bar a variant, as long as its time, with its interval, and below it a dot for each process;
    None where nothing was timed.
    """
    report = record.report
    timed = report.timed
    if not timed:
        return None
    longest = max(time.ends[1] for _, time in timed) or 1.0
    parts: list[str] = []
    said = []
    for place, (variant, time) in enumerate(timed):
        y = place * _ROW
        label = seconds(time.median)
        spread = plus_minus(time.low, time.high, time.median)
        comparison = report.comparison(variant.name)
        style = ""
        words = f"{label} {spread}".rstrip()
        if comparison and comparison.speedup is not None:
            words += f" · {in_bar(comparison.speedup, comparison)}"
            style = STYLES[comparison.verdict].rpartition(" ")[2]
        said.append(f"{variant.name} {words}")
        name = fit(variant.name, _cells(WIDTH - _LETTER * len(words)) - 2)
        parts += [
            _text(0, y + 13, name, "name"),
            _text(WIDTH, y + 13, words, "end"),
            element(
                "rect",
                x=0,
                y=y + 19,
                width=max(1.0, WIDTH * time.median / longest),
                height=_BAR,
                class_=f"bar {style}".rstrip(),
            ),
            *_whisker(longest, time, y + 19 + _BAR / 2),
        ]
        for time_s in _processes(record, variant):
            if time_s <= longest:
                x = WIDTH * time_s / longest
                parts.append(element("circle", cx=x, cy=y + 36, r=1.8, class_="dot"))
    alternative = f"time per {report.per}: {'; '.join(said)}"
    return _picture(len(timed) * _ROW, alternative, parts)


def _whisker(longest: float, time: Time, y: float) -> Iterator[Html]:
    low, high = (WIDTH * end / longest for end in time.ends)
    if high - low >= 1:
        yield element("path", d=f"M{low:.1f} {y - 4}v8m0-4H{high:.1f}m0-4v8", class_="whisker")


def _processes(record: Record, variant: VariantReport) -> Sequence[float]:
    """The median time of each process; of many an even selection."""
    per_item = record.live.detail.times_s.get(variant.name, ())
    items = 1.0 if record.report.per == Per.ITEM else variant.items or 1.0
    step = len(per_item) // _MOST_DOTS + 1
    return [time_s * items for time_s in per_item[::step]]


_PART = 26


def parts_picture(report: RunReport) -> Html | None:
    """One bar is one step, from its start to its end, cut by what the time went into; None where
    nothing says that.
    """
    shown = [
        (variant, variant.goodput)
        for variant in report.variants
        if variant.goodput and (variant.goodput.partition or variant.goodput.phases)
    ]
    by_phases = bars.phases([summary.phases for _, summary in shown])
    parts: list[str] = []
    said = []
    for row, ((variant, summary), phases) in enumerate(zip(shown, by_phases, strict=True)):
        profiled = summary.goodput is not None
        divided = parts_of(summary, sms_busy(variant)) if profiled else phases
        words = f"computing {share(summary)}" if profiled else "by the marks of the step"
        y = row * (_ROW + 2)
        name = fit(variant.name, _cells(WIDTH - _LETTER * len(words)) - 2)
        parts += [_text(0, y + 13, name, "name"), _text(WIDTH, y + 13, words, "end")]
        parts += _divided(divided, y + 18)
        listed = ", ".join(
            f"{bars.WORDS.get(part.words, part.words)} {part.share:.0%}"
            for part in divided
            if part.share >= 0.005
        )
        said.append(f"{variant.name}, {words}: {listed}")
    if not parts:
        return None
    height = len(shown) * (_ROW + 2)
    return _picture(height, f"where the time of a step goes: {'; '.join(said)}", parts)


def _divided(parts: Sequence[bars.StepPart], y: float) -> Iterator[Html]:
    """Each part with its words in it where they fit, else its letter."""
    whole = sum(part.share for part in parts) or 1.0
    x = 0.0
    for part in parts:
        width = WIDTH * part.share / whole
        if width >= 0.5:
            style = part.style.removeprefix("bright_")
            name = f"part {style} {'bright' * part.style.startswith('bright')}".rstrip()
            yield element("rect", x=x, y=y, width=width, height=_PART - 4, class_=name)
            word = bars.WORDS.get(part.words, part.words)
            for words in (f"{word} {part.share:.0%}", word, part.letter):
                if len(words) * _LETTER + 4 <= width:
                    yield _text(x + width / 2, y + 15, words, "in word")
                    break
        x += width


_COLUMNS, _ROWS = 52, 18
_HIGH = 15.0
_LEFT, _TOP = 5 * _LETTER, 18.0
_RADIUS = 7.5
_CHARS_BELOW = 0.75
"""Of the height of a cell, where the letters in it stand."""


def placed_roofline(roofline: Roofline, family: str) -> Plot | None:
    """Where everything of it goes; None where there is no roof, or nothing below."""
    roofs = family_roofs(roofline.ceilings, family)
    drawable = [point for point in roofline.points if point.is_drawable]
    if roofs.memory is None or not roofs.flats or (roofline.points and not drawable):
        return None
    return plot_of(roofline, roofs, axes_for(roofs, _COLUMNS, _ROWS), family)


def roofline_picture(roofline: Roofline, family: str, plot: Plot) -> Html:
    """The roofs of a family of dtypes, and the points below them."""
    parts = [_text(0, 11, f"FLOP/s, {family}", "name"), *_grid(plot.axes)]
    parts += [_roof(plot.axes, line) for line in plot.roofs]
    for placed in plot.of_kinds(CEILING, NAME, BADGE):
        class_ = f"{placed.kind} dim" if placed.style == DIM else placed.kind
        x = _LEFT + placed.column * _LETTER
        y = _TOP + (placed.row + _CHARS_BELOW) * _HIGH
        parts.append(_text(x, y, placed.text, class_))
    for index, point in reversed(list(enumerate(roofline.points))):
        if point.is_drawable:
            parts += _mark(plot, index, point)
    said = [
        f"{letter_of(index)} {point.variant}: {rate(point.rate)}{point.unit}, "
        f"{percent_of_roof(point.fraction)} % of the roof {point.roof} ({point.source})"
        for index, point in enumerate(roofline.points)
    ]
    height = _TOP + _ROWS * _HIGH + 30
    return _picture(height, f"roofline, {family}: {'; '.join(said)}", parts)


def _place(axes: Axes, intensity: float, rate: float) -> tuple[float, float]:
    x = _LEFT + (axes.across.position(intensity) + 0.5) * _LETTER
    return x, _TOP + axes.depth(rate) * _HIGH


def _grid(axes: Axes) -> Iterator[Html]:
    bottom, right = _TOP + _ROWS * _HIGH, _LEFT + _COLUMNS * _LETTER
    for power in range(axes.bottom, axes.top + 1):
        y = _TOP + axes.depth(10.0**power) * _HIGH
        yield element("line", x1=_LEFT, x2=right, y1=y, y2=y, class_="grid")
        yield _text(_LEFT - 5, y + 4, decade(power), "end tick")
    for power in range(axes.left, axes.right + 1):
        x = _LEFT + (axes.across.position(10.0**power) + 0.5) * _LETTER
        yield element("line", x1=x, x2=x, y1=_TOP, y2=bottom, class_="grid")
        yield _text(x, bottom + 12, decade(power), "in tick")
    yield _text(right, bottom + 26, "FLOP/byte", "end name")


def _roof(axes: Axes, line: RoofLine) -> Html:
    ends = [_place(axes, at, line.rate(at)) for at in (line.start, line.end)]
    class_ = "roof" if line.ceiling.source == MEASURED else "roof other"
    return _path(ends, f"{class_} cache" if line.ceiling.roof == CACHE else class_)


def _mark(plot: Plot, index: int, point: Point) -> Iterator[Html]:
    """A letter where a point is inside of the axes, with the interval of its rate."""
    axes = plot.axes
    intensity = point.intensity or 0.0
    if not plot.inside(axes.row(point.rate), axes.column(intensity)):
        return
    x, y = _place(axes, intensity, point.rate)
    if point.rate_low and point.rate_high:
        ends = [_place(axes, intensity, end) for end in (point.rate_low, point.rate_high)]
        yield _path(ends, "whisker")
    yield element("circle", cx=x, cy=y, r=_RADIUS, class_="point")
    yield _text(x, y + 4, letter_of(index), "in letter")


_CHART, _GAP = 34, 12
_MOST_CHARTS, _MOST_POINTS = 8, 120
_NAMES, _VALUES = 90, 88


def telemetry_picture(record: Record) -> Html | None:
    """A line over time for each of the most important fields, in the stages of the run; None where
    nothing was read.
    """
    report, readings = record.report, record.readings
    telemetry = report.telemetry
    if telemetry is None or len(readings) < 2:
        return None
    start, end = readings[0].t, readings[-1].t
    fields = [
        field
        for field in rows(host=telemetry.gpu is None)
        if field not in telemetry.unsupported and field in telemetry.peaks
    ]
    fields = fields[:_MOST_CHARTS]
    if not fields or end <= start:
        return None
    height = 16 + len(fields) * (_CHART + _GAP) + 14
    parts: list[str] = list(_stages(record, start, end, height - 14))
    said = []
    for row, field in enumerate(fields):
        y = 16 + row * (_CHART + _GAP)
        top = _top(report, field)
        points = _averaged(readings, field, start, end)
        places = [
            (
                _NAMES + at * (WIDTH - _NAMES - _VALUES),
                y + _CHART * (1 - min(1.0, max(0.0, value / top))),
            )
            for at, value in points
        ]
        most = f"≤ {_amount(field, telemetry.peaks[field])}"
        base = element(
            "line", x1=_NAMES, x2=WIDTH - _VALUES, y1=y + _CHART, y2=y + _CHART, class_="grid"
        )
        parts += [
            _text(0, y + _CHART - 3, FIELDS[field].label, "name"),
            _text(WIDTH, y + _CHART - 3, most, "end"),
            base,
            _path(places, "line"),
        ]
        mean = fmean(value for _, value in points)
        said.append(f"{FIELDS[field].label} mean {_amount(field, mean)}, at most {most[2:]}")
    where = telemetry.gpu or "the host"
    parts.append(_text(WIDTH - _VALUES, height - 2, f"{end - start:.0f} s", "end tick"))
    parts.append(_text(_NAMES, height - 2, "0 s", "tick"))
    return _picture(height, f"{where} over {end - start:.0f} s: {'; '.join(said)}", parts)


def _averaged(
    readings: Sequence[Telemetry], field: str, start: float, end: float
) -> list[tuple[float, float]]:
    """(place from 0 to 1, mean), at most so many of them."""
    values = [(r.t, r.values[field]) for r in readings if field in r.values]
    step = (end - start) / _MOST_POINTS
    return [
        ((number + 0.5) / _MOST_POINTS, fmean(value for _, value in group))
        for number, group in groupby(
            values, key=lambda reading: min(_MOST_POINTS - 1, int((reading[0] - start) / step))
        )
    ]


def _top(report: RunReport, field: str) -> float:
    """The value at which a chart is full: the limit where there is one."""
    telemetry = report.telemetry
    assert telemetry is not None
    if FIELDS[field].unit == "%":
        return PERCENT
    limit = telemetry.limits.get(field)
    return max(limit or 0.0, telemetry.peaks.get(field, 0.0)) or 1.0


def _amount(field: str, value: float) -> str:
    unit = FIELDS[field].unit
    return byte_count(value) if unit == "B" else f"{value:,.0f} {unit}"


def _stages(record: Record, start: float, end: float, height: float) -> Iterator[Html]:
    """A stripe for every other stage, with its name where there is room."""
    begun = [(stage.stage, max(start, stage.t)) for stage in record.stages if stage.t < end]
    firsts = [next(group) for _, group in groupby(begun, key=lambda each: each[0])]
    scale = (WIDTH - _NAMES - _VALUES) / (end - start)
    ends = [*(t for _, t in firsts[1:]), end]
    for number, ((stage, t), until) in enumerate(zip(firsts, ends, strict=True)):
        x, width = _NAMES + (t - start) * scale, (until - t) * scale
        if number % 2:
            yield element("rect", x=x, y=0, width=width, height=height, class_="stripe")
        if len(stage.value) * _SMALL + 2 <= width:
            yield _text(x + 2, 10, stage.value, "tick")
