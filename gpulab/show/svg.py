"""A figure as SVG, for a page and for a file: light and dark by the reader's setting, no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulab.draw.axis import Axis, axis_of
from gpulab.draw.figure import Figure, Line, Mark, Scale
from gpulab.show.markup import Html, element, style_sheet

_NAMESPACE = "http://www.w3.org/2000/svg"
_WIDTH, _HEIGHT = 720, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 16, 28, 40
_ROW = 26
"""Pixels of a bar with its gap."""
_NEAR, _LINE = 120, 13
"""Pixels that a name takes, and a line of text."""
_LETTER = 7.3
"""Pixels of a letter, about."""


def file_of(figures: Sequence[Figure]) -> str:
    """The figures below each other, as a file."""
    top = 0
    inner = []
    for figure in figures:
        inner.append(element("g", svg(figure), transform=f"translate(0 {top})"))
        top += _height(figure) + _BOTTOM
    style = element("style", style_sheet("svg.css"))
    title = element("title", "gpulab")  # by which --plot knows what it may replace
    size = f"0 0 {_WIDTH} {top}"
    whole = element("svg", title, style, *inner, xmlns=_NAMESPACE, viewBox=size, class_="figure")
    return f"{whole}\n"


def _height(figure: Figure) -> int:
    return _HEIGHT if figure.y else _TOP + _BOTTOM + _ROW * len(figure.bars)


def svg(figure: Figure) -> Html:
    """The figure as an element."""
    height = _height(figure)
    parts = list(_bars(figure, height)) if figure.y is None else list(_plot(figure, figure.y))
    title = _text(0, 16, figure.title, "start")
    return element(
        "svg",
        title,
        *parts,
        xmlns=_NAMESPACE,
        viewBox=f"0 0 {_WIDTH} {height}",
        width=str(_WIDTH),
        height=str(height),
        role="img",
        class_="figure",
    )


def _plot(figure: Figure, y: Scale) -> Iterator[Html]:
    across = axis_of(figure.x, _WIDTH - _LEFT - _RIGHT)
    up = axis_of(y, _HEIGHT - _TOP - _BOTTOM)
    bottom = _HEIGHT - _BOTTOM
    for value, label in _ticks(figure.x, across):
        x = _LEFT + across.position(value)
        yield _grid((x, _TOP), (x, bottom))
        yield _text(x, bottom + 16, label, "middle", "soft")
    for value, label in _ticks(y, up):
        at = bottom - up.position(value)
        yield _grid((_LEFT, at), (_WIDTH - _RIGHT, at))
        yield _text(_LEFT - 6, at + 4, label, "end", "soft")
    yield _text(_WIDTH - _RIGHT, _HEIGHT - 6, figure.x.name, "end")
    taken: list[float] = []
    for line in figure.lines:
        yield from _line(line, across, up, taken)
    named: list[tuple[float, float]] = []
    for mark in figure.marks:
        yield _mark(mark, across, up, named)


def _line(line: Line, across: Axis, up: Axis, taken: list[float]) -> Iterator[Html]:
    """With its label at its right end, below those that stand there."""
    bottom = _HEIGHT - _BOTTOM
    places = [(_LEFT + across.position(x), bottom - up.position(y)) for x, y in line.points]
    path = " L".join(f"{_n(x)} {_n(max(y, _TOP))}" for x, y in places)
    yield element("path", d=f"M{path}", class_=f"{line.style} {'dashed' * line.dashed}".strip())
    if not line.label:
        return
    x, y = places[-1]
    if x >= _WIDTH - _RIGHT - 1:
        y -= 5
        while any(abs(y - other) < _LINE for other in taken):
            y += _LINE
        yield _text(x, y, line.label, "end", line.style)
    else:  # a slope: beside it, the first at its left
        share = 0.4 if taken else 0.75
        x, y = (start + share * (end - start) for start, end in zip(places[0], (x, y), strict=True))
        if taken:
            yield _text(x + 12, y + 10, line.label, "start", line.style)
        else:
            yield _text(x - 12, y - 4, line.label, "end", line.style)
    taken.append(y)


def _mark(mark: Mark, across: Axis, up: Axis, named: list[tuple[float, float]]) -> Html:
    """With its name at its right, at its left where another stands there."""
    x, bottom = _LEFT + across.position(mark.x), _HEIGHT - _BOTTOM
    y = bottom - up.position(mark.y)
    parts = [element("circle", cx=_n(x), cy=_n(y), r="4", class_="fill")]
    if mark.low and mark.high and mark.high > mark.low:
        ends = [bottom - up.position(end) for end in (mark.low, mark.high)]
        parts.append(element("path", d=f"M{_n(x)} {_n(ends[0])} L{_n(x)} {_n(ends[1])}"))
    words = f"{mark.letter} {mark.name}".rstrip()
    if any(abs(x - other[0]) < _NEAR and abs(y - other[1]) < _LINE for other in named):
        parts.append(_text(x - 7, y + 4, words, "end"))
    else:
        parts.append(_text(x + 7, y + 4, words, "start"))
        named.append((x, y))
    soft = "soft" if mark.style == "dim" else mark.style
    return element("g", *parts, class_=soft or None)


def _bars(figure: Figure, height: int) -> Iterator[Html]:
    names = max((len(each.name) for each in figure.bars), default=0) * _LETTER + 10
    words = max((len(each.words) for each in figure.bars), default=0) * _LETTER + 10
    room = max(80.0, _WIDTH - names - words)
    scale = room / figure.x.high
    for place, each in enumerate(figure.bars):
        y = _TOP + place * _ROW
        middle = y + 9
        length, low, high = (names + value * scale for value in (each.value, each.low, each.high))
        size = {"width": _n(length - names), "height": "18"}
        parts = [
            _text(names - 6, y + 13, each.name, "end"),
            element("rect", x=_n(names), y=_n(y), class_="fill", **size),
            element("path", d=f"M{_n(low)} {middle} H{_n(high)}"),
            _text(max(length, high) + 8, y + 13, each.words, "start"),
        ]
        yield element("g", *parts, class_=each.style or None)
    yield _text(names, height - 8, f"{figure.x.name}: bars begin at 0", "start", "soft")


def _grid(start: tuple[float, float], end: tuple[float, float]) -> Html:
    path = f"M{_n(start[0])} {_n(start[1])} L{_n(end[0])} {_n(end[1])}"
    return element("path", d=path, class_="grid")


def _ticks(scale: Scale, axis: Axis) -> list[tuple[float, str]]:
    if scale.ticks:
        return [(value, scale.label(value)) for value in scale.ticks]
    return [(axis.value(start + len(text) / 2), text) for start, text in axis.ticks(scale.label)]


def _text(x: float, y: float, words: str, anchor: str, class_: str = "") -> Html:
    return element("text", words, x=_n(x), y=_n(y), text_anchor=anchor, class_=class_ or None)


def _n(value: float) -> str:
    """A number of pixels in a few letters."""
    return f"{value:.1f}".removesuffix(".0")
