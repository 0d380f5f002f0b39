"""Parts of a step, or of a whole job, in seconds: a row a part with its letter, which explains the bars; a column a
variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gpulab.report.goodput.goodput_report import GoodputReport
from gpulab.views import bars
from gpulab.views.text import Glyphs, seconds

LEAST = 0.01
"""A share that has a row, whether a bar has a cell for it or not."""
_MOST_VARIANTS, _GAP = 5, 2
_LEAST_S = 1e-12
WORDS = {"preempted": "off the CPU"}
"""Of parts that are called otherwise where they are shown."""


@dataclass(frozen=True)
class Whole:
    """What a column divides: the seconds of its parts, and of all of it."""

    parts_s: Mapping[str, float]
    total_s: float


def parts_table(
    profiled: Mapping[str, GoodputReport], letters: AbstractSet[str], glyphs: Glyphs
) -> RenderableType | None:
    """A row for every part of which a bar shows the letter; None where nothing was drawn, or has no seconds."""
    columns = {name: Whole(summary.seconds, summary.step_s) for name, summary in profiled.items() if summary.step_s}
    drawn = [part for summary in profiled.values() for part in bars.categories(summary.partition.items())]
    visible = {part.words: part.mark for part in drawn if part.share >= LEAST or part.letter in letters}
    rows = [(visible[name], name) for name in bars.CATEGORIES if name in visible]
    return PartsTable("of a step", "step", columns, rows, glyphs) if rows and columns else None


@dataclass(frozen=True)
class PartsTable:
    """Seconds and per cent of each column; without the per cent where room is short, of many the first and the last.

    `rows` are letters and names of parts; the whole is the last row.
    """

    head: str
    whole: str
    columns: Mapping[str, Whole]
    rows: Sequence[tuple[Text, str]]
    glyphs: Glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        glyphs, names = self.glyphs, list(self.columns)
        shown = names if len(names) <= _MOST_VARIANTS else [names[0], *names[1 - _MOST_VARIANTS :]]
        words = [WORDS.get(name, name) for _, name in self.rows]
        names_width = max(len(self.head), 2 + max(map(cell_len, (*words, self.whole))))
        for with_shares in (True, False):
            columns = [self._column(self.columns[name], with_shares=with_shares) for name in shown]
            widths = [max(map(len, column)) for column in columns]
            room = options.max_width - names_width - sum(widths) - _GAP * len(widths)
            if room >= 0:
                break
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        table.add_column(self.head, width=names_width, vertical="bottom", overflow="fold")
        for name, cells in zip(shown, widths, strict=True):
            named = min(cell_len(glyphs(name)), cells + max(0, room))
            room -= max(0, named - cells)
            head = Text(glyphs(name), overflow="fold", justify="right")
            table.add_column(head, justify="right", width=max(cells, named), overflow="fold", vertical="bottom")
        for place, ((mark, _), word) in enumerate(zip(self.rows, words, strict=True)):
            cells_of_row = (Text(glyphs(column[place])) for column in columns)
            table.add_row(Text.assemble(mark, f" {word}"), *cells_of_row)
        table.add_row(Text(f"  {self.whole}", "bold"), *(Text(glyphs(column[-1])) for column in columns))
        yield table
        if omitted := [name for name in names if name not in shown]:
            yield Text(glyphs(f"not shown: {', '.join(omitted)}"), "dim")

    def _column(self, whole: Whole, *, with_shares: bool) -> list[str]:
        """The parts, and all of them."""
        times = [whole.parts_s.get(name) for _, name in self.rows]
        figures = [(_seconds(time_s), "" if time_s is None else f"{time_s / whole.total_s:.0%}") for time_s in times]
        figures.append((_seconds(whole.total_s), ""))
        if not with_shares:
            return [time for time, _ in figures]
        widest = max(len(share) for _, share in figures)
        return [f"{time} {share.rjust(widest)}" for time, share in figures]


def _seconds(value: float | None) -> str:
    return "" if value is None else "0 s" if value < _LEAST_S else seconds(value)
