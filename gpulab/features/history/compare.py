"""Two runs side by side: what differs between them first, then times on one axis, speedups, parts,
conclusions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import zip_longest
from textwrap import wrap

from rich.text import Text

from gpulab.core.machine import Device
from gpulab.core.units import plural, seconds, span, times
from gpulab.draw import bars
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around, tick_seconds
from gpulab.draw.canvas import Canvas, fit, packed
from gpulab.report.report import GoodputReport, RunReport, Time
from gpulab.report.sentences import with_reason
from gpulab.scenario import Param
from gpulab.stats.comparison import Comparison

_NAME, _VALUE = 17, 18
_SHORT_NAME = 22
"""Of a name in a sentence: both names fit into its first row."""
_ROOM = 0.1
_VERSIONS = ("torch", "cuda", "driver", "python", "gpulab")
_FEW_LINES, _MOST_LINES = 12, 1_000
"""Lines of the files that are shown of those that differ, at first and where all are asked for."""
_MOST_COMPARED = 2_000
"""Lines of a file between its first and its last change: to match more of them takes seconds."""
_CONTENDED = 0.05
_UNPAIRED = (
    "Runs are processes of their own, with no pairs between them: a small change of a time "
    "means nothing."
)


def compare_view(
    first: RunReport,
    second: RunReport,
    *,
    width: int,
    sources: tuple[str, str] = ("", ""),
    all_lines: bool = False,
) -> Text:
    """A is the first, B the second. Of the lines of their files that differ, the first ones, or
    all.
    """
    page = _Page(width)
    page.three("", f"A  {_start(first)}", f"B  {_start(second)}", "bold", "bold")
    facts = _facts(first, second)
    for name, a, b in facts:
        if a != b:
            page.three(name, a or "none", b or "none", "yellow")
    share = _contention(first)
    other_share = _contention(second)
    if share or other_share:
        page.three(
            "contention", f"{share:.0%} of the time", f"{other_share:.0%} of the time", "yellow"
        )
    page.the_same([f"{name} {a}" for name, a, b in facts if a == b])
    others = {variant.name for variant, _ in second.timed}
    names = [variant.name for variant, _ in first.timed if variant.name in others]
    if names:
        page.heading("time of a step, one axis", "99 % intervals")
        times_of = [{variant.name: time for variant, time in run.timed} for run in (first, second)]
        page.times({name: [times[name] for times in times_of] for name in names})
    pairs = _pairs(first, second)
    if pairs:
        page.heading("speedups within each run", "99 % intervals")
        page.speedups(pairs)
    if summaries := _summaries(first, second, names):
        page.parts(summaries)
    page.heading("conclusions")
    page.line(_UNPAIRED)
    for entry, other in pairs:
        page.line(_conclusion(entry, other))
    if not pairs:
        page.line("They have no comparison in common that has an interval in both.")
    if first.source_sha256 != second.source_sha256:
        page.changes(sources, all_lines=all_lines)
    return page.text()


def _start(report: RunReport) -> str:
    return report.at[:19].replace("T", " ")


def _facts(first: RunReport, second: RunReport) -> list[tuple[str, str, str]]:
    """(what, of A, of B)."""
    facts = [
        ("scenario", first.scenario, second.scenario),
        ("outcome", _outcome(first), _outcome(second)),
        ("file", first.source_sha256[:12], second.source_sha256[:12]),
        ("device", _device(first.device), _device(second.device)),
        ("parameters", *_params(first, second)),
        ("length", _kind(first), _kind(second)),
    ]
    for name in _VERSIONS:
        a, b = first.environment.get(name), second.environment.get(name)
        if a != b:
            facts.append((name, a or "none", b or "none"))
    return [fact for fact in facts if fact[1] or fact[2]]


def _outcome(report: RunReport) -> str:
    return with_reason(str(report.outcome), report.reason)


def _device(device: Device | None) -> str:
    if device is None:
        return ""
    if device.kind == "cpu":
        return f"{device.name}, {plural(device.threads, 'thread')}"
    return device.name


def _params(first: RunReport, second: RunReport) -> tuple[str, str]:
    """The parameters of each that differ, or all."""
    a, b = first.params, second.params
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    return _assignments(a, names or a), _assignments(b, names or b)


def _assignments(params: Mapping[str, Param], names: Iterable[str]) -> str:
    return " ".join(f"{name}={params[name]}" for name in names if name in params)


def _kind(report: RunReport) -> str:
    if report.smoke:
        return "smoke"
    if report.quick:
        return "quick"
    return "full"


def _contention(report: RunReport) -> float:
    share = max((variant.contention or 0.0 for variant in report.variants), default=0.0)
    if share < _CONTENDED:
        return 0.0
    return share


def _pairs(first: RunReport, second: RunReport) -> list[tuple[Comparison, Comparison]]:
    """Each comparison of A that has an interval, and the same one of B."""
    others = {(entry.variant, entry.against): entry for entry in second.comparisons if entry.low}
    pairs = []
    for entry in first.comparisons:
        other = others.get((entry.variant, entry.against))
        if entry.low and other:
            pairs.append((entry, other))
    return pairs


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


def _conclusion(entry: Comparison, other: Comparison) -> str:
    low = max(entry.low or 0.0, other.low or 0.0)
    high = min(entry.high or 0.0, other.high or 0.0)
    name = f"{fit(entry.variant, _SHORT_NAME)} over {fit(entry.against, _SHORT_NAME)}"
    if low <= high:
        return (
            f"{name}: paired within each run, and they agree ({span(low, high)} is in both "
            "intervals)."
        )
    change = (other.speedup or 1.0) / (entry.speedup or 1.0)
    return (
        f"{name}: intervals do not overlap: B's speedup is {times(change)} A's; see the "
        "differences above."
    )


@lru_cache(maxsize=1)
def _changes(a: str, b: str) -> list[tuple[str, str]]:
    """(line number and sign, text) of every line of one file that is not in the other, in the order
    of the files.
    """
    mine, other = a.split("\n"), b.split("\n")
    start = next(
        (place for place, both in enumerate(zip_longest(mine, other)) if both[0] != both[1]),
        len(mine),
    )
    end = 0
    while end < min(len(mine), len(other)) - start and mine[-1 - end] == other[-1 - end]:
        end += 1
    mine, other = mine[start : len(mine) - end], other[start : len(other) - end]
    blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(mine), 0, len(other))]
    if max(len(mine), len(other)) <= _MOST_COMPARED:
        blocks = SequenceMatcher(None, mine, other).get_opcodes()
    changes = []
    for kind, a_from, a_to, b_from, b_to in blocks:
        if kind != "equal":
            changes += [(f"{start + place + 1:>5} -", mine[place]) for place in range(a_from, a_to)]
            changes += [
                (f"{start + place + 1:>5} +", other[place]) for place in range(b_from, b_to)
            ]
    return changes


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

    def changes(self, sources: tuple[str, str], *, all_lines: bool) -> None:
        """The lines that differ."""
        without = [letter for letter, source in zip("AB", sources, strict=True) if not source]
        if without:
            self.heading("the lines that differ")
            return self.line(f"The run file of {' and '.join(without)} holds no source.")
        changes = _changes(*sources)
        most = _MOST_LINES if all_lines else _FEW_LINES
        self.heading("the lines that differ, A - and B +", f"{len(changes):,}")
        for number, text in changes[:most]:
            row = self.row()
            style = "green" if number.endswith("+") else "red"
            row.put(0, 0, number, style)
            row.put(0, len(number) + 1, text.expandtabs(4), style)
        if len(changes) > most:
            text = f"      … {len(changes) - most:,} more"
            if not all_lines:
                text += ", d shows them"
            self.row().put(0, 0, text)

    def times(self, both: Mapping[str, Sequence[Time]]) -> None:
        """Of each variant A's and B's."""
        ends: list[float] = []
        for a, b in both.values():
            ends += [*a.ends, *b.ends]
        axis = self._axis(ends, tick_seconds)
        for name, pair in both.items():
            for letter, time in zip("AB", pair, strict=True):
                low, high = time.ends
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
                words = f"{times(entry.speedup)} {entry.verdict}"
                row = self._of_run(entry.variant, letter, words)
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
            f"{letter} {name}" for name, (letter, _) in bars.CATEGORIES.items() if letter in letters
        ]
        self.heading("where the time goes", ", ".join(legend))
        for name, letter, summary, bar in drawn:
            self._of_run(name, letter, f"useful {summary.goodput:.0%}").put_text(0, _NAME, bar)

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
