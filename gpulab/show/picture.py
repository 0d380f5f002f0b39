"""Figures by matplotlib, for PNG and PDF: imported only where one is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Picture
from matplotlib.ticker import NullFormatter, NullLocator

from gpulab.core.limits import NAME_LENGTH
from gpulab.core.text import cut, one_line
from gpulab.draw.figure import Figure, Scale

_INCHES, _DPI = 6.5, 150
_COLOURS = {
    "": "tab:gray",
    "dim": "lightgray",
    "cyan": "tab:cyan",
    "yellow": "tab:olive",
    "magenta": "tab:purple",
    "bright_magenta": "tab:pink",
}
"""Of styles; others are colours of matplotlib."""


class _Drawn(Picture):
    """Notebooks know figures of pyplot only."""

    def _repr_png_(self) -> bytes:
        return encoded(self, "png")


@contextmanager
def _own_defaults() -> Iterator[None]:
    """The same picture on every machine."""
    # of glyphs that its font lacks
    with matplotlib.rc_context(), warnings.catch_warnings(action="ignore"):
        matplotlib.rcdefaults()
        yield


@_own_defaults()
def drawn(title: str, figures: Sequence[Figure]) -> Picture:
    """The figures beside each other below a title."""
    size = (_INCHES * max(1, len(figures)), _INCHES * 0.75)
    picture = _Drawn(figsize=size, dpi=_DPI, layout="constrained")
    picture.suptitle("\n".join(map(_text, title.split("\n"))), fontsize=10)
    for number, figure in enumerate(figures, 1):
        axes = picture.add_subplot(1, len(figures), number)
        axes.set_title(_text(figure.title), fontsize=9)
        _set_scale(axes, axes.xaxis, figure.x)
        if figure.y is None:
            _draw_bars(axes, figure)
        else:
            _set_scale(axes, axes.yaxis, figure.y)
            _draw_lines(axes, figure)
        axes.grid(visible=True, alpha=0.3)
    return picture


@_own_defaults()
def encoded(picture: Picture, kind: str) -> bytes:
    """The picture as a file, such as png."""
    file = BytesIO()
    # by which --plot knows what it may replace
    made_by = "Software" if kind == "png" else "Creator"
    picture.savefig(file, format=kind, metadata={made_by: "gpulab"})
    return file.getvalue()


def _set_scale(axes: Axes, axis: Axis, scale: Scale) -> None:
    axis.set_label_text(_text(scale.name))
    of_x = axis is axes.xaxis
    (axes.set_xscale if of_x else axes.set_yscale)("log" if scale.logarithmic else "linear")
    (axes.set_xlim if of_x else axes.set_ylim)(scale.low, scale.high)
    if scale.ticks:
        axis.set_minor_locator(NullLocator())
        axis.set_ticks(list(scale.ticks), [_text(scale.label(value)) for value in scale.ticks])
    else:
        axis.set_major_formatter(lambda value, _: scale.label(value) if value > 0 else "0")
        axis.set_minor_formatter(NullFormatter())


def _draw_lines(axes: Axes, figure: Figure) -> None:
    for line in figure.lines:
        x, y = zip(*line.points, strict=True)
        style = ":" if line.dashed else "-"
        label = _text(line.label) if line.label else None
        axes.plot(x, y, style, color=_colour(line.style), linewidth=1.2, label=label)
    for mark in figure.marks:
        low, high = mark.low or mark.y, mark.high or mark.y
        ends = [[abs(mark.y - low)], [abs(high - mark.y)]]
        axes.errorbar(mark.x, mark.y, yerr=ends, fmt="o", capsize=3, color=_colour(mark.style))
        words = f"{mark.letter} {_text(mark.name)}"
        axes.annotate(words, (mark.x, mark.y), (5, 5), textcoords="offset points", fontsize=7)
    if any(line.label for line in figure.lines):
        axes.legend(fontsize=6, loc="upper left")


def _draw_bars(axes: Axes, figure: Figure) -> None:
    """The first on top."""
    for place, each in enumerate(figure.bars):
        ends = [[each.value - each.low], [each.high - each.value]]
        axes.barh(place, each.value, 0.6, xerr=ends, color=_colour(each.style), capsize=3)
        words = _text(each.words)
        place_of_words = (each.high, place)
        axes.annotate(
            words, place_of_words, (4, 0), textcoords="offset points", va="center", fontsize=7
        )
    axes.set_yticks(range(len(figure.bars)), [_text(each.name) for each in figure.bars])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.8 * figure.x.high)


def _colour(style: str) -> str:
    if style in ("red", "green", "blue"):
        return f"tab:{style}"
    return _COLOURS.get(style, style)


def _text(text: str) -> str:
    """One line that is shown as it stands: dollars begin no formula, which could be broken, or take
    for ever.
    """
    return cut(one_line(text), NAME_LENGTH).replace("$", r"\$")
