"""A rectangle of a canvas: what is drawn into it stays inside."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

from gpulab.draw.axis import LogAxis
from gpulab.draw.bars import bar
from gpulab.draw.blocks import Text, styled_words
from gpulab.draw.canvas import Canvas, fit, wide


@dataclass(frozen=True)
class Area:
    """Cells from the top left. A text that does not fit ends with an ellipsis; one outside is not
    drawn.
    """

    canvas: Canvas
    row: int
    column: int
    width: int
    height: int

    def put(
        self, row: int, column: int, text: str, style: str = "", *, most: int | None = None
    ) -> None:
        """`most` cells, by default up to the right edge."""
        room = self.width - column if most is None else min(most, self.width - column)
        if 0 <= row < self.height and column >= 0 and room > 0:
            self.canvas.put(self.row + row, self.column + column, fit(text, room), style)

    def put_right(self, row: int, text: str, style: str = "") -> None:
        """Up to the right edge."""
        self.put(row, max(0, self.width - wide(text)), text, style)

    def put_lines(self, text: str) -> None:
        """Wrapped to the width; what has no row ends with an ellipsis."""
        lines = wrap(text, max(self.width, 1))
        if len(lines) > self.height > 0:
            lines[self.height - 1 :] = [" ".join(lines[self.height - 1 :])]
        for row, line in enumerate(lines[: self.height]):
            self.put(row, 0, line)

    def put_text(self, row: int, column: int, text: Text) -> None:
        """One line with its styles."""
        for words, style in styled_words(text):
            self.put(row, column, words, style or str(text.style))
            column += wide(words)

    def interval(
        self,
        row: int,
        column: int,
        axis: LogAxis,
        values: tuple[float, float, float],
        style: str = "",
    ) -> None:
        """(low, median, high) on an axis that begins at `column`; an end outside of it is an
        arrow.
        """
        low, middle, high = (axis.inside(value) for value in values)
        left = "◀" if axis.cell(values[0]) < 0 else "├"
        right = "▶" if axis.cell(values[2]) >= axis.cells else "┤"
        line = left + "─" * max(0, high - low - 1) + right if high > low else "┼"
        self.put(row, column + low, line, style)
        self.put(row, column + middle, "●", style or "bold")

    def bar(self, row: int, column: int, share: float, cells: int, style: str = "") -> None:
        """A bar of `share` of so many cells, in eighths of a cell; whatever there is of it is
        seen.
        """
        self.put(row, column, bar(share, cells), style, most=cells)

    def part(self, row: int, column: int, width: int, height: int) -> Area:
        """A rectangle in this one."""
        width, height = min(width, self.width - column), min(height, self.height - row)
        return Area(
            self.canvas, self.row + row, self.column + column, max(0, width), max(0, height)
        )
