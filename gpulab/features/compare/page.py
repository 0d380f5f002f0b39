"""Two runs side by side: what differs between them first, then times on one axis, speedups, parts,
conclusions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from textwrap import wrap

from rich.text import Text

from gpulab.core.units import seconds
from gpulab.draw import bars
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around, tick_seconds
from gpulab.draw.canvas import Canvas, packed
from gpulab.features.compare.analysis import SavedRun, compare_runs, contention
from gpulab.features.compare.differences import in_common
from gpulab.features.compare.report import ScenarioComparison
from gpulab.features.compare.words import FEW_LINES, conclusion, environment_lines, line_text
from gpulab.report.report import GoodputReport, RunReport, Time
from gpulab.stats.comparison import Comparison
from gpulab.stats.verdicts import in_bar

_NAME, _VALUE = 17, 25
_ROOM = 0.1
_WIDEST = 10.0
_UNPAIRED = (
    "Runs are processes of their own, with no pairs between them: a small change of a time "
    "means nothing."
)


def compare_view(first: SavedRun, second: SavedRun, *, width: int, all_lines: bool = False) -> Text:
    """A is the first, B the second. Of the lines of their files that differ, the first ones, or
    all.
    """
    a, b = first.report, second.report
    comparison = compare_runs("A", "B", [first], [second])
    page = _Page(width)
    page.three("", f"A  {_start(a)}", f"B  {_start(b)}", "bold", "bold")
    for each in comparison.differences:
        page.three(each.what, each.a or "none", each.b or "none", "yellow")
    share = contention(a)
    other_share = contention(b)
    if share or other_share:
        page.three(
            "off the CPU", f"{share:.0%} of the time", f"{other_share:.0%} of the time", "yellow"
        )
    page.the_same(in_common(comparison.a, comparison.b))
    others = {variant.name for variant, _ in b.timed}
    names = [variant.name for variant, _ in a.timed if variant.name in others]
    if names:
        page.heading("time of a step, one axis", "99 % intervals")
        times_of = [{variant.name: time for variant, time in run.timed} for run in (a, b)]
        page.times({name: [times[name] for times in times_of] for name in names})
    pairs = _pairs(a, b)
    if pairs:
        page.heading("speedups within each run", "99 % intervals")
        page.speedups(pairs)
    if summaries := _summaries(a, b, names):
        page.parts(summaries)
    page.heading("conclusions")
    for line in _conclusions(comparison):
        page.line(line)
    if first.report.source_sha256 != second.report.source_sha256:
        page.changes(comparison, (first.source, second.source), all_lines=all_lines)
    return page.text()


def _start(report: RunReport) -> str:
    return report.at[:19].replace("T", " ")


def _pairs(first: RunReport, second: RunReport) -> list[tuple[Comparison, Comparison]]:
    """Each comparison of A that has an interval, and the same one of B."""
    others = {(entry.variant, entry.against): entry for entry in second.comparisons if entry.low}
    pairs = []
    for entry in first.comparisons:
        other = others.get((entry.variant, entry.against))
        if entry.low and other:
            pairs.append((entry, other))
    return pairs


def _conclusions(comparison: ScenarioComparison) -> Iterator[str]:
    """Of each variant whether it changed; what weakens that comes first."""
    yield from environment_lines([comparison])
    for row in comparison.rows:
        yield conclusion(row)
    yield _UNPAIRED
    if not comparison.rows:
        yield "They have no measured variant in common."


def _summaries(
    first: RunReport, second: RunReport, names: Sequence[str]
) -> list[tuple[str, str, GoodputReport]]:
    """(variant, letter of the run, where its time goes)."""
    summaries = []
    for name in names:
        for letter, report in (("A", first), ("B", second)):
            summary = report.variant(name).goodput
            if summary is not None and summary.goodput is not None:
                summaries.append((name, letter, summary))
    return summaries


def _drawn(time: Time) -> tuple[float, float]:
    """The ends of its interval on an axis that has no zero, which a very wide one may reach."""
    low, high = time.ends
    return max(low, time.median / _WIDEST), high


class _Page:
    """Rows as they come, each a canvas of its own."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._canvases: list[Canvas] = []

    def text(self) -> Text:
        page = Text("\n", no_wrap=True, overflow="ellipsis")
        return page.join(canvas.text() for canvas in self._canvases)

    def row(self) -> Area:
        """A new one."""
        canvas = Canvas(self._width, 1)
        self._canvases.append(canvas)
        return Area(canvas, 0, 0, self._width, 1)

    def line(self, text: str) -> None:
        """A sentence, over as many rows as it takes."""
        for part in wrap(text, self._width):
            self.row().put(0, 0, part)

    def heading(self, left: str, right: str = "") -> None:
        """What is right goes below where both have no room."""
        row = self.row()
        row.put(0, 0, "─" * self._width)
        row.put(0, 2, f" {left} ", "bold")
        if 0 < len(right) < self._width - len(left) - 10:
            row.put(0, self._width - len(right) - 4, f" {right} ")
        elif right:
            self.line(right)

    def three(self, name: str, a: str, b: str, style: str = "", style_of_a: str = "") -> None:
        middle = _NAME + (self._width - _NAME) // 2
        row = self.row()
        row.put(0, 0, name)
        row.put(0, _NAME, a, style_of_a, most=middle - _NAME - 2)
        row.put(0, middle, b, style)

    def the_same(self, facts: Sequence[str]) -> None:
        name = "the same"
        for text in packed(facts, " · ", self._width - _NAME):
            row = self.row()
            row.put(0, 0, name)
            row.put(0, _NAME, text)
            name = ""

    def changes(
        self, comparison: ScenarioComparison, sources: tuple[str, str], *, all_lines: bool
    ) -> None:
        """The lines that differ."""
        without = [letter for letter, source in zip("AB", sources, strict=True) if not source]
        if without:
            self.heading("the lines that differ")
            return self.line(f"The run file of {' and '.join(without)} holds no source.")
        lines = comparison.changed_lines
        if not all_lines:
            lines = lines[:FEW_LINES]
        self.heading("the lines that differ, A - and B +", f"{comparison.changed_line_count:,}")
        for line in lines:
            self.row().put(0, 0, line_text(line), "red" if line.side == "a" else "green")
        left = comparison.changed_line_count - len(lines)
        if left:
            text = f"      … {left:,} more"
            if not all_lines:
                text += ", d shows them"
            self.row().put(0, 0, text)

    def times(self, both: Mapping[str, Sequence[Time]]) -> None:
        """Of each variant A's and B's."""
        ends: list[float] = []
        for a, b in both.values():
            ends += [*_drawn(a), *_drawn(b)]
        axis = self._axis(ends, tick_seconds)
        for name, pair in both.items():
            for letter, time in zip("AB", pair, strict=True):
                low, high = _drawn(time)
                row = self._of_run(name, letter, seconds(time.median))
                row.interval(0, _NAME, axis, (low, time.median, high))

    def speedups(self, pairs: Sequence[tuple[Comparison, Comparison]]) -> None:
        entries = [entry for pair in pairs for entry in pair]
        ends = [end for entry in entries for end in (entry.low, entry.high) if end]
        if min(ends) > 0.7 and max(ends) < 1.5:
            ends.append(1.0)
        axis = self._axis(ends, lambda value: f"{value:g}x")
        for pair in pairs:
            for letter, entry in zip("AB", pair, strict=True):
                row = self._of_run(entry.variant, letter, in_bar(entry.speedup, entry))
                values = entry.low or 1.0, entry.speedup or 1.0, entry.high or 1.0
                row.interval(0, _NAME, axis, values)

    def parts(self, summaries: Sequence[tuple[str, str, GoodputReport]]) -> None:
        """(variant, letter of the run, its summary)."""
        drawn = []
        for name, letter, summary in summaries:
            parts = bars.categories(summary.partition.items())
            bar = bars.parts_bar(parts, max(10, self._width - _NAME - _VALUE))
            drawn.append((name, letter, summary, bar))
        letters = {mark for *_, bar in drawn for mark in bar.plain}
        legend = [
            f"{letter} {bars.WORDS.get(name, name)}"
            for name, (letter, _) in bars.CATEGORIES.items()
            if letter in letters
        ]
        self.heading("where the time goes", ", ".join(legend))
        for name, letter, summary, bar in drawn:
            self._of_run(name, letter, f"computing {summary.goodput:.0%}").put_text(0, _NAME, bar)

    def _axis(self, values: Sequence[float], label: Callable[[float], str]) -> LogAxis:
        axis = LogAxis(*around(list(values), _ROOM), max(10, self._width - _NAME - _VALUE))
        row = self.row()
        for start, text in axis.ticks(label):
            row.put(0, _NAME + start, text)
        return axis

    def _of_run(self, name: str, letter: str, words: str) -> Area:
        """A row with a variant's name, the letter of the run, and a few words at its end."""
        row = self.row()
        row.put(0, 0, name if letter == "A" else "", most=_NAME - 3)
        row.put(0, _NAME - 2, letter)
        row.put(0, self._width - _VALUE + 1, words)
        return row
