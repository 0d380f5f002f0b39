"""Two runs side by side: what differs between them first, then times on one axis, speedups, parts,
conclusions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache, partial
from itertools import zip_longest
from textwrap import wrap

from rich.text import Text

from gpulab.core.machine import Device
from gpulab.core.units import plural, seconds, span, times
from gpulab.draw import bars
from gpulab.draw.area import Area
from gpulab.draw.axis import LogAxis, around, tick_seconds
from gpulab.draw.canvas import Canvas, fit, wide
from gpulab.report.report import RunReport, Time
from gpulab.report.sentences import sentence
from gpulab.stats.comparison import Comparison

_NAME, _VALUE = 17, 18
_SAID_NAME = 22
"""Of a name in a sentence, which then ends in the sentence's first row."""
_ROOM = 0.1
_VERSIONS = ("torch", "cuda", "driver", "python", "gpulab")
_FEW_LINES, _MOST_LINES = 12, 1_000
"""Lines of the files that are shown of those that differ, at first and where all are asked for."""
_MOST_COMPARED = 2_000
"""Lines of a file between its first and its last change: to match more of them takes seconds."""
_CONTENDED = 0.05

_Draw = Callable[[Area, int], None]
"""Draws into a row of the area."""


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
    rows = _Rows(width)
    rows.three(
        "",
        f"A  {first.at[:19].replace('T', ' ')}",
        f"B  {second.at[:19].replace('T', ' ')}",
        "bold",
        "bold",
    )
    facts = _facts(first, second)
    for name, a, b in facts:
        if a != b:
            rows.three(name, a or "none", b or "none", "yellow")
    if any(contended := [_contention(report) for report in (first, second)]):
        a, b = (f"{share:.0%} of the time" for share in contended)
        rows.three("contention", a, b, "yellow")
    rows.the_same([f"{name} {a}" for name, a, b in facts if a == b])
    names = [name for name in _names(first) if name in _names(second)]
    if names:
        rows.heading("time of a step, one axis", "99 % intervals")
        rows.times(first, second, names)
    pairs = [(entry, other) for entry in first.comparisons if (other := _same(second, entry))]
    pairs = [(entry, other) for entry, other in pairs if entry.low and other.low]
    if pairs:
        rows.heading("speedups within each run", "99 % intervals")
        rows.speedups(pairs)
    rows.parts(first, second, names)
    rows.heading("conclusions", "")
    rows.line(
        "Runs are processes of their own, with no pairs between them: a small change of a time "
        "means nothing."
    )
    for entry, other in pairs:
        rows.line(_said(entry, other))
    if not pairs:
        rows.line("They have no comparison in common that has an interval in both.")
    if first.source_sha256 != second.source_sha256:
        rows.changes(sources, all_lines=all_lines)
    return rows.text()


def _facts(first: RunReport, second: RunReport) -> list[tuple[str, str, str]]:
    """(what, of A, of B)."""
    facts = [
        ("scenario", first.scenario, second.scenario),
        ("outcome", _outcome(first), _outcome(second)),
        ("file", first.source_sha256[:12], second.source_sha256[:12]),
        ("device", _device(first.device), _device(second.device)),
        ("parameters", *_params(first, second)),
        ("kind of run", _kind(first), _kind(second)),
    ]
    for name in _VERSIONS:
        a, b = first.environment.get(name), second.environment.get(name)
        if a != b:
            facts.append((name, a or "none", b or "none"))
    return [fact for fact in facts if fact[1] or fact[2]]


def _outcome(report: RunReport) -> str:
    return f"{report.outcome}: {sentence(report.reason)}" if report.reason else str(report.outcome)


def _device(device: Device | None) -> str:
    if device is None:
        return ""
    return (
        f"{device.name}, {plural(device.threads, 'thread')}"
        if device.kind == "cpu"
        else device.name
    )


def _params(first: RunReport, second: RunReport) -> tuple[str, str]:
    """Of each all parameters, or those that differ."""
    both = first.params, second.params
    names = [
        name
        for name in {**first.params, **second.params}
        if len({params.get(name) for params in both}) > 1
    ]
    a, b = (
        " ".join(f"{name}={params[name]}" for name in names or params if name in params)
        for params in both
    )
    return a, b


def _kind(report: RunReport) -> str:
    return "smoke" if report.smoke else "quick" if report.quick else "whole"


def _contention(report: RunReport) -> float:
    share = max((variant.contention or 0.0 for variant in report.variants), default=0.0)
    return share if share >= _CONTENDED else 0.0


def _names(report: RunReport) -> list[str]:
    return [variant.name for variant in report.variants if variant.time_per(report.per)]


def _same(report: RunReport, entry: Comparison) -> Comparison | None:
    both = (entry.variant, entry.against)
    return next(
        (other for other in report.comparisons if (other.variant, other.against) == both), None
    )


def _said(entry: Comparison, other: Comparison) -> str:
    low = max(entry.low or 0.0, other.low or 0.0)
    high = min(entry.high or 0.0, other.high or 0.0)
    name = " over ".join(fit(name, _SAID_NAME) for name in (entry.variant, entry.against))
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


class _Rows:
    """Rows as they come; the canvas is made once their number is known."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rows: list[list[_Draw]] = []

    def text(self) -> Text:
        canvas = Canvas(self._width, len(self._rows))
        area = Area(canvas, 0, 0, self._width, len(self._rows))
        for row, parts in enumerate(self._rows):
            for draw in parts:
                draw(area, row)
        return canvas.text()

    def line(self, text: str) -> None:
        """A sentence, over as many rows as it takes."""
        self._rows += [[_at(0, part)] for part in wrap(text, self._width)]

    def heading(self, left: str, right: str) -> None:
        """What is right goes below where both have no room."""
        beside = 0 < len(right) < self._width - len(left) - 10
        end = [_at(self._width - len(right) - 4, f" {right} ")] if beside else []
        self._rows.append([_at(0, "─" * self._width), _at(2, f" {left} ", "bold"), *end])
        if right and not beside:
            self.line(right)

    def three(self, name: str, a: str, b: str, style: str = "", style_of_a: str = "") -> None:
        middle = _NAME + (self._width - _NAME) // 2
        self._rows.append(
            [_at(0, name), _at(_NAME, a, style_of_a, middle - _NAME - 2), _at(middle, b, style)]
        )

    def the_same(self, facts: Sequence[str]) -> None:
        """As many beside each other as have room; none goes on in the next row."""
        rows: list[str] = []
        for fact in facts:
            longer = f"{rows[-1]} · {fact}" if rows else ""
            if longer and wide(longer) <= self._width - _NAME:
                rows[-1] = longer
            else:
                rows.append(fact)
        self._rows += [
            [_at(0, "" if place else "the same"), _at(_NAME, text)]
            for place, text in enumerate(rows)
        ]

    def changes(self, sources: tuple[str, str], *, all_lines: bool) -> None:
        """The lines that differ."""
        without = [letter for letter, source in zip("AB", sources, strict=True) if not source]
        if without:
            self.heading("the lines that differ", "")
            return self.line(f"The run file of {' and '.join(without)} holds no source.")
        changes = _changes(*sources)
        shown = changes[: _MOST_LINES if all_lines else _FEW_LINES]
        self.heading("the lines that differ, A - and B +", f"{len(changes):,}")
        for number, text in shown:
            style = "green" if number.endswith("+") else "red"
            self._rows.append(
                [_at(0, number, style), _at(len(number) + 1, text.expandtabs(4), style)]
            )
        if len(shown) < len(changes):
            self._rows.append(
                [
                    _at(
                        0,
                        f"      … {len(changes) - len(shown):,} "
                        f"more{'' if all_lines else ', d shows them'}",
                    )
                ]
            )

    def times(self, first: RunReport, second: RunReport, names: Sequence[str]) -> None:
        both = {name: [_time(report, name) for report in (first, second)] for name in names}
        axis = self._axis(
            [end for pair in both.values() for time in pair for end in time.ends], tick_seconds
        )
        for name, pair in both.items():
            for letter, time in zip("AB", pair, strict=True):
                low, high = time.ends
                self._interval(name, letter, axis, (low, time.median, high), seconds(time.median))

    def speedups(self, pairs: Sequence[tuple[Comparison, Comparison]]) -> None:
        ends = [end for pair in pairs for entry in pair for end in (entry.low, entry.high) if end]
        axis = self._axis(
            [*ends, *([1.0] if min(ends) > 0.7 and max(ends) < 1.5 else [])],
            lambda value: f"{value:g}x",
        )
        for pair in pairs:
            for letter, entry in zip("AB", pair, strict=True):
                values = (entry.low or 1.0, entry.speedup or 1.0, entry.high or 1.0)
                self._interval(
                    entry.variant, letter, axis, values, f"{times(entry.speedup)} {entry.verdict}"
                )

    def parts(self, first: RunReport, second: RunReport, names: Sequence[str]) -> None:
        drawn: list[list[_Draw]] = []
        letters = set()
        for name in names:
            for letter, report in (("A", first), ("B", second)):
                summary = report.variant(name).goodput
                if summary is None or summary.goodput is None:
                    continue
                parts = bars.categories(summary.partition.items())
                bar = bars.parts_bar(parts, max(10, self._width - _NAME - _VALUE))
                letters |= set(bar.plain)
                drawn.append(
                    self._row(name, letter, _text_at(_NAME, bar), f"useful {summary.goodput:.0%}")
                )
        if drawn:
            legend = (
                f"{letter} {name}"
                for name, (letter, _) in bars.CATEGORIES.items()
                if letter in letters
            )
            self.heading("where the time goes", ", ".join(legend))
            self._rows += drawn

    def _axis(self, values: Sequence[float], label: Callable[[float], str]) -> LogAxis:
        axis = LogAxis(*around(list(values), _ROOM), max(10, self._width - _NAME - _VALUE))
        self._rows.append([_at(_NAME + start, text) for start, text in axis.ticks(label)])
        return axis

    def _interval(
        self, name: str, letter: str, axis: LogAxis, values: tuple[float, float, float], words: str
    ) -> None:
        """(low, median, high)."""
        self._rows.append(self._row(name, letter, partial(_interval, axis, values), words))

    def _row(self, name: str, letter: str, draw: _Draw, words: str) -> list[_Draw]:
        named = _at(0, name if letter == "A" else "", most=_NAME - 3)
        return [named, _at(_NAME - 2, letter), draw, _at(self._width - _VALUE + 1, words)]


def _at(column: int, text: str, style: str = "", most: int | None = None) -> _Draw:
    return lambda area, row: area.put(row, column, text, style, most=most)


def _text_at(column: int, text: Text) -> _Draw:
    return lambda area, row: area.put_text(row, column, text)


def _interval(axis: LogAxis, values: tuple[float, float, float], area: Area, row: int) -> None:
    area.interval(row, _NAME, axis, values)


def _time(report: RunReport, name: str) -> Time:
    time = report.variant(name).time_per(report.per)
    assert time is not None
    return time
