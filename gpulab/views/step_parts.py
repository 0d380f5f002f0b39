"""The parts of a step in seconds: a row a part with its letter, which explains the bars; a column a variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from gpulab.report.goodput_report import GoodputReport
from gpulab.views import bars
from gpulab.views.text import Glyphs, seconds

_LEAST = 0.01
"""A share that has a row, whether a bar has a cell for it or not."""
_MOST_VARIANTS, _GAP = 5, 2
_HEAD, _WHOLE = "of a step", "step"
_WORDS = {"preempted": "off the CPU"}


def parts_table(
    profiled: Mapping[str, GoodputReport], letters: AbstractSet[str], glyphs: Glyphs
) -> RenderableType | None:
    """A row for every part of which a bar shows the letter. Of many variants the first and the last.

    None where nothing was drawn.
    """
    timed = [name for name, summary in profiled.items() if summary.step_s]
    shown = timed if len(timed) <= _MOST_VARIANTS else [timed[0], *timed[1 - _MOST_VARIANTS :]]
    drawn = [part for summary in profiled.values() for part in bars.categories(summary.partition.items())]
    visible = {part.words: part.mark for part in drawn if part.share >= _LEAST or part.letter in letters}
    rows = [(visible[name], name) for name in bars.CATEGORIES if name in visible]
    omitted = [name for name in timed if name not in shown]
    return _PartsTable({name: profiled[name] for name in shown}, rows, omitted, glyphs) if rows else None


@dataclass(frozen=True)
class _PartsTable:
    """Seconds and per cent of each variant's step; without the per cent where room is short."""

    variants: Mapping[str, GoodputReport]
    rows: Sequence[tuple[Text, str]]
    omitted: Sequence[str]
    glyphs: Glyphs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width, glyphs = options.max_width, self.glyphs
        words = [_WORDS.get(name, name) for _, name in self.rows]
        names_width = max(len(_HEAD), 2 + max(map(cell_len, words)))
        for with_shares in (True, False):
            columns = [self._column(summary, with_shares=with_shares) for summary in self.variants.values()]
            widths = [max(map(len, column)) for column in columns]
            room = width - names_width - sum(widths) - _GAP * len(widths)
            if room >= 0:
                break
        table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
        table.add_column(_HEAD, width=names_width, vertical="bottom", overflow="fold")
        for name, cells in zip(self.variants, widths, strict=True):
            named = min(cell_len(glyphs(name)), cells + max(0, room))
            room -= max(0, named - cells)
            head = Text(glyphs(name), overflow="fold", justify="right")
            table.add_column(head, justify="right", width=max(cells, named), overflow="fold", vertical="bottom")
        for place, ((mark, _), word) in enumerate(zip(self.rows, words, strict=True)):
            cells_of_row = (Text(glyphs(column[place])) for column in columns)
            table.add_row(Text.assemble(mark, f" {word}"), *cells_of_row)
        if columns:
            table.add_row(Text(f"  {_WHOLE}", "bold"), *(Text(glyphs(column[-1])) for column in columns))
        yield table
        if self.omitted:
            yield Text(glyphs(f"not shown: {', '.join(self.omitted)}"), "dim")

    def _column(self, summary: GoodputReport, *, with_shares: bool) -> list[str]:
        """The parts, and the whole step."""
        times = [(summary.seconds.get(name), summary.partition.get(name)) for _, name in self.rows]
        figures = [(_seconds(time_s), "" if share is None else f"{share:.0%}") for time_s, share in times]
        figures.append((_seconds(summary.step_s), ""))
        if not with_shares:
            return [time for time, _ in figures]
        widest = max(len(share) for _, share in figures)
        return [f"{time} {share.rjust(widest)}" for time, share in figures]


def _seconds(value: float | None) -> str:
    return "" if value is None else "0 s" if value < 1e-12 else seconds(value)
