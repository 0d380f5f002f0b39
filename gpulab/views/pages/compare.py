"""Two runs side by side: what differs between them first, then times on one axis, speedups, parts, what may be said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import unified_diff

from rich.text import Text

from gpulab.analysis.comparison import Comparison
from gpulab.protocol.device import Device
from gpulab.report.report import RunReport, Time
from gpulab.views import bars
from gpulab.views.findings import sentence
from gpulab.views.live.area import Area
from gpulab.views.live.axis import LogAxis, around, tick_seconds
from gpulab.views.roofline.canvas import Canvas
from gpulab.views.text import Glyphs, seconds, span, times

_NAME, _VALUE = 17, 18
_ROOM = 0.1
_VERSIONS = ("torch", "cuda", "driver", "python", "gpulab")
_MOST_LINES = 12
_CONTENDED = 0.05


def compare_view(
    first: RunReport, second: RunReport, glyphs: Glyphs, *, width: int, sources: tuple[str, str] = ("", "")
) -> Text:
    """A is the first, B the second."""
    rows = _Rows(width, glyphs)
    rows.three("", f"A  {first.at[:19].replace('T', ' ')}", f"B  {second.at[:19].replace('T', ' ')}", "bold")
    for name, a, b in _facts(first, second):
        rows.three(name, a, b if b != a else "the same", "" if b == a else "yellow")
    if any(contended := [_contention(report) for report in (first, second)]):
        a, b = (f"{share:.0%} of the time" for share in contended)
        rows.three("others took", a, b, "yellow")
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
    rows.heading("what may be said", "")
    rows.line("Runs are processes of their own, with no pairs between them: a small change of a time means nothing.")
    for entry, other in pairs:
        rows.line(_said(entry, other))
    if not pairs:
        rows.line("They have no comparison in common that has an interval in both.")
    changes = list(unified_diff(sources[0].splitlines(), sources[1].splitlines(), lineterm="", n=0))[2:]
    if changes:
        rows.heading("the lines that differ", f"{len(changes)}" if len(changes) > _MOST_LINES else "")
        for change in changes[:_MOST_LINES]:
            rows.line(change)
    return rows.text()


def _facts(first: RunReport, second: RunReport) -> list[tuple[str, str, str]]:
    """(what, of A, of B)."""
    facts = [
        ("scenario", first.scenario, second.scenario),
        ("outcome", _outcome(first), _outcome(second)),
        ("file", first.source_sha256[:12], second.source_sha256[:12]),
        ("device", _device(first.device), _device(second.device)),
        ("parameters", _params(first), _params(second)),
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
    return f"{device.name}, {device.threads} threads" if device.kind == "cpu" else device.name


def _params(report: RunReport) -> str:
    return " ".join(f"{name}={value}" for name, value in report.params.items())


def _kind(report: RunReport) -> str:
    return "smoke" if report.smoke else "quick" if report.quick else "whole"


def _contention(report: RunReport) -> float:
    share = max((variant.contention or 0.0 for variant in report.variants), default=0.0)
    return share if share >= _CONTENDED else 0.0


def _names(report: RunReport) -> list[str]:
    return [variant.name for variant in report.variants if variant.time_per(report.per)]


def _same(report: RunReport, entry: Comparison) -> Comparison | None:
    both = (entry.variant, entry.against)
    return next((other for other in report.comparisons if (other.variant, other.against) == both), None)


def _said(entry: Comparison, other: Comparison) -> str:
    low = max(entry.low or 0.0, other.low or 0.0)
    high = min(entry.high or 0.0, other.high or 0.0)
    name = f"{entry.variant} over {entry.against}"
    if low <= high:
        return f"{name}: paired within each run, and they agree ({span(low, high)} is in both intervals)."
    change = (other.speedup or 1.0) / (entry.speedup or 1.0)
    return f"{name}: the two intervals lie apart: B's speedup is {times(change)} A's. Something above differs."


class _Rows:
    """Rows as they come; the canvas is made once their number is known."""

    def __init__(self, width: int, glyphs: Glyphs) -> None:
        self._width, self._glyphs = width, glyphs
        self._put: list[list[tuple[int, str, str]]] = []

    def text(self) -> Text:
        canvas = Canvas(self._width, len(self._put), self._glyphs)
        area = Area(canvas, 0, 0, self._width, len(self._put))
        for row, texts in enumerate(self._put):
            for column, text, style in texts:
                area.put(row, column, text, style)
        return canvas.text()

    def line(self, text: str, style: str = "") -> None:
        self._put.append([(0, text, style)])

    def heading(self, left: str, right: str) -> None:
        end = [(self._width - len(right) - 3, f" {right} ", "")] if right else []
        self._put.append([(0, "─" * self._width, "dim"), (2, f" {left} ", "bold"), *end])

    def three(self, name: str, a: str, b: str, style: str = "") -> None:
        middle = _NAME + (self._width - _NAME) // 2
        room = middle - _NAME - 2
        shown = a if len(a) <= room else f"{a[: room - 1]}…"
        self._put.append([(0, name, "dim"), (_NAME, shown, ""), (middle, b, style)])

    def times(self, first: RunReport, second: RunReport, names: Sequence[str]) -> None:
        both = {name: [_time(report, name) for report in (first, second)] for name in names}
        axis = self._axis([end for pair in both.values() for time in pair for end in time.ends], tick_seconds)
        for name, pair in both.items():
            for letter, time in zip("AB", pair, strict=True):
                ends = (*time.ends, time.median)
                self._interval(name if letter == "A" else "", letter, axis, ends, seconds(time.median))

    def speedups(self, pairs: Sequence[tuple[Comparison, Comparison]]) -> None:
        ends = [end for pair in pairs for entry in pair for end in (entry.low, entry.high) if end]
        axis = self._axis([*ends, *([1.0] if min(ends) > 0.7 and max(ends) < 1.5 else [])], lambda value: f"{value:g}x")
        for pair in pairs:
            for letter, entry in zip("AB", pair, strict=True):
                values = (entry.low or 1.0, entry.high or 1.0, entry.speedup or 1.0)
                words = f"{times(entry.speedup)} {entry.verdict}"
                self._interval(entry.variant if letter == "A" else "", letter, axis, values, words)

    def parts(self, first: RunReport, second: RunReport, names: Sequence[str]) -> None:
        drawn, letters = [], set()
        for name in names:
            for letter, report in (("A", first), ("B", second)):
                summary = report.variant(name).goodput
                if summary is None or summary.goodput is None:
                    continue
                parts = bars.categories(summary.partition.items())
                bar = bars.bar(parts, max(10, self._width - _NAME - _VALUE)).plain
                letters |= set(bar)
                words = (self._width - _VALUE + 1, f"useful {summary.goodput:.0%}", "")
                named = (0, name if letter == "A" else "", "")
                drawn.append([named, (_NAME - 2, letter, ""), (_NAME, bar, ""), words])
        if drawn:
            legend = (f"{letter} {name}" for name, (letter, _) in bars.CATEGORIES.items() if letter in letters)
            self.heading("where the time goes", ", ".join(legend))
            self._put += drawn

    def _axis(self, values: Sequence[float], label: Callable[[float], str]) -> LogAxis:
        axis = LogAxis(*around(list(values), _ROOM), max(10, self._width - _NAME - _VALUE))
        ticks = axis.ticks(label)
        self._put.append([(_NAME + start, text, "dim") for start, text in ticks])
        return axis

    def _interval(self, name: str, letter: str, axis: LogAxis, values: tuple[float, float, float], words: str) -> None:
        low, high, middle = (_NAME + axis.inside(value) for value in values)
        line = "├" + "─" * max(0, high - low - 1) + "┤" if high > low else "┼"
        drawn = [(low, line, ""), (middle, "●", "bold"), (self._width - _VALUE + 1, words, "")]
        self._put.append([(0, name, ""), (_NAME - 2, letter, ""), *drawn])


def _time(report: RunReport, name: str) -> Time:
    time = report.variant(name).time_per(report.per)
    assert time is not None
    return time
