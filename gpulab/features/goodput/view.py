"""Where the time of a step goes: a bar a variant, its parts in seconds, and whole jobs
from process start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from gpulab.core.statuses import Cache
from gpulab.core.units import byte_count, percent_of_roof, rate, seconds, times
from gpulab.draw import bars
from gpulab.draw.blocks import (
    Block,
    Fitted,
    Group,
    Text,
    columns_table,
    rows_table,
    styled_words,
)
from gpulab.draw.table import first_and_last
from gpulab.features.goodput.findings import goodput_uncertain
from gpulab.features.goodput.job import BEFORE_STEPS, STEPS
from gpulab.features.goodput.result import FromStart, GoodputReport, JobGoodput, StepSource
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines

if TYPE_CHECKING:
    from gpulab.features.roofline.bound import Point

LEAST = 0.01
"""A share that has a row, whether a bar has a cell for it or not."""
_GAP = 2
_LEAST_S = 1e-12


def parts_of(summary: GoodputReport) -> list[bars.StepPart]:
    """The parts of a step."""
    return bars.categories(summary.partition.items())


@dataclass(frozen=True)
class Whole:
    """The time that a column divides: the seconds of its parts, and of all of it."""

    parts_s: Mapping[str, float]
    total_s: float


def parts_table(profiled: Mapping[str, GoodputReport], letters: AbstractSet[str]) -> Block | None:
    """A row for every part of which a bar shows the letter; None where nothing was drawn, or has no
    seconds.
    """
    columns = {
        name: Whole(summary.seconds, summary.step_s)
        for name, summary in profiled.items()
        if summary.step_s
    }
    drawn = [part for summary in profiled.values() for part in parts_of(summary)]
    visible = {
        part.words: part.mark for part in drawn if part.share >= LEAST or part.letter in letters
    }
    rows = [(visible[name], name) for name in bars.CATEGORIES if name in visible]
    if not rows or not columns:
        return None
    return Fitted(PartsTable("of a step", "step", columns, rows).of_width)


@dataclass(frozen=True)
class PartsTable:
    """Seconds and per cent of each column; without the per cent where room is short, of many the
    first and the last.

    `rows` are letters and names of parts; the whole is the last row.
    """

    head: str
    whole: str
    columns: Mapping[str, Whole]
    rows: Sequence[tuple[Text, str]]

    def of_width(self, width: int) -> Iterator[Block]:
        names = list(self.columns)
        shown = first_and_last(names)
        words = [bars.WORDS.get(name, name) for _, name in self.rows]
        names_width = max(len(self.head), 2 + max(map(cell_len, (*words, self.whole))))
        for with_shares in (True, False):
            columns = [self._column(self.columns[name], with_shares=with_shares) for name in shown]
            widths = [max(map(len, column)) for column in columns]
            room = width - names_width - sum(widths) - _GAP * len(widths)
            if room >= 0:
                break
        table = columns_table()
        table.add_column(self.head, width=names_width, vertical="bottom", overflow="fold")
        for name, cells in zip(shown, widths, strict=True):
            named = min(cell_len(name), cells + max(0, room))
            room -= max(0, named - cells)
            head = Text(name, overflow="fold")
            table.add_column(
                head, justify="right", width=max(cells, named), overflow="fold", vertical="bottom"
            )
        for place, ((mark, _), word) in enumerate(zip(self.rows, words, strict=True)):
            cells_of_row = (Text(column[place]) for column in columns)
            table.add_row(Text.assemble(mark, f" {word}"), *cells_of_row)
        table.add_row(Text(f"  {self.whole}", "bold"), *(Text(column[-1]) for column in columns))
        yield table
        if omitted := [name for name in names if name not in shown]:
            yield Text(f"not shown: {', '.join(omitted)}", "dim")

    def _column(self, whole: Whole, *, with_shares: bool) -> list[str]:
        """The parts, and all of them."""
        times = [whole.parts_s.get(name) for _, name in self.rows]
        figures = [
            (_seconds(time_s), "" if time_s is None else f"{time_s / whole.total_s:.0%}")
            for time_s in times
        ]
        figures.append((_seconds(whole.total_s), ""))
        if not with_shares:
            return [time for time, _ in figures]
        widest = max(len(share) for _, share in figures)
        return [f"{time} {share.rjust(widest)}" for time, share in figures]


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return "0 s" if value < _LEAST_S else seconds(value)


UNRELIABLE = "?"
_NARROW = 80
"""Columns from which on bars grow with the width."""
_BAR_MARGIN = 3
"""Columns beside a bar from which on it is half as long."""
_LEAST = 0.005
_BUSY = 0.05
"""A share of the time off the CPU that explains an unreliable profile."""
_FAR = 0.2
"""A difference of two ways to measure the share of computing, beyond which neither is drawn."""
_SHARES_OF_ROOF = ("product", "efficiency")
_COLUMNS = (
    ("product", "of roof"),
    ("efficiency", "u alone"),
    ("hidden", "hidden"),
    ("items_per_s", "items/s"),
    ("peak_bytes", "peak"),
)


def goodput(report: RunReport, *, with_notes: bool = True) -> Block | None:
    """The parts of each step that was profiled, and what must be known of them; None where none
    was.
    """
    profiled = _profiled(report)
    if not profiled:
        return None
    points = {variant.name: variant.roofline for variant in report.variants}
    texts = {
        name: [_cell(column, summary, points[name]) for column, _ in _COLUMNS]
        for name, summary in profiled.items()
    }
    # which has a table of peaks
    has_memory = any(variant.get("memory") for variant in report.variants)
    shown = [
        place
        for place, (column, _) in enumerate(_COLUMNS)
        if any(row[place] for row in texts.values()) and not (has_memory and column == "peak_bytes")
    ]

    def of_width(width: int) -> Iterator[Block]:
        narrow = bars.CELLS if len(shown) <= _BAR_MARGIN else bars.CELLS // 2
        cells = narrow + min(max(0, width - _NARROW), bars.CELLS)
        table = columns_table()
        table.add_column("computing", overflow="fold", min_width=9)
        table.add_column("", justify="right", no_wrap=True)
        table.add_column("where the time goes", no_wrap=True, min_width=cells)
        for place in shown:
            table.add_column(_COLUMNS[place][1], justify="right", no_wrap=True)
        letters = set()
        for name, summary in profiled.items():
            if why := why_not_known(report.variant(name)):
                figures = (texts[name][place] for place in shown)
                table.add_row(name, UNRELIABLE, Text(f"not known: {why}", "yellow"), *figures)
                continue
            parts_of_step = parts_of(summary)
            drawn = bars.parts_bar(parts_of_step, cells, computing=share(summary))
            blocks = {part.block for part in parts_of_step}
            letters |= {words[0] for words, style in styled_words(drawn) if style in blocks}
            if summary.reliable is False:
                drawn.style = "dim"
            table.add_row(name, share(summary), drawn, *(texts[name][place] for place in shown))
        yield from (table, "")
        known = {
            name: each for name, each in profiled.items() if not why_not_known(report.variant(name))
        }
        if parts := parts_table(known, letters):
            yield parts
        if with_notes:
            yield from _notes(report, profiled)

    return Fitted(of_width)


def why_not_known(variant: VariantReport) -> str:
    """Return why the parts of its step are not shown; empty where they are: with a question mark
    where two ways to measure it differ by a little.
    """
    if variant.goodput is None or variant.goodput.reliable is not False:
        return ""
    if (variant.contention or 0.0) >= _BUSY:
        return "the machine was busy"
    ways = [each.values for each in variant.goodput.reasons if each.code == goodput_uncertain.code]
    differ = any(abs(float(each["goodput"]) - float(each["other"])) > _FAR for each in ways)
    return "two ways to measure it differ" if differ else ""


def _profiled(report: RunReport) -> dict[str, GoodputReport]:
    return {
        variant.name: variant.goodput
        for variant in report.variants
        if variant.goodput and variant.goodput.goodput is not None
    }


def share(summary: GoodputReport | JobGoodput) -> str:
    """The share in which it computes, with a question mark where it is not certain within 5 points;
    nothing where there is none.
    """
    if summary.goodput is None:
        return ""
    return f"{summary.goodput:.0%}{UNRELIABLE * (summary.reliable is False)}"


def phases(report: RunReport) -> Block | None:
    """The shares of the phases so far: live, and of the host's clock or the device's events, not of
    its kernels.
    """
    phased = {
        variant.name: variant.goodput
        for variant in report.variants
        if variant.goodput and variant.goodput.phases
    }
    if not phased:
        return None
    table = rows_table()
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True, min_width=bars.CELLS)
    table.add_column(overflow="fold")
    drawn = bars.phases([summary.phases for summary in phased.values()])
    for (name, summary), parts in zip(phased.items(), drawn, strict=True):
        waiting = {name or bars.OUTSIDE for name in summary.waiting}
        shares = Text()
        for part in parts:
            if part.share >= _LEAST:
                shares.append(", " if shares else "").append(part.mark)
                waits = " (waits)" if part.words in waiting else ""
                words = bars.WORDS.get(part.words, part.words)
                shares.append(f" {words} {part.share:.0%}{waits}")
        table.add_row(name, bars.parts_bar(parts), shares)
    heading = "phase share, an upper bound" if report.on_gpu else "phase share"
    return Group(Text(heading, "bold"), table)


def _notes(report: RunReport, profiled: dict[str, GoodputReport]) -> list[Text]:
    notes = []
    if any(summary.hidden is not None for summary in profiled.values()):
        notes.append(Text("hidden: the share of copies behind other work", "dim"))
    unmarked = [name for name, summary in profiled.items() if not summary.marked]
    if unmarked:
        where = "nothing"
        if len(unmarked) < len(profiled):
            where = f"in {', '.join(unmarked)} nothing"
        text = f"{where} is marked useful (lab.useful()), so everything that torch computes counts"
        notes.append(Text(text, "dim"))
    own_step = [
        name for name, summary in profiled.items() if summary.step_source == StepSource.PROFILER
    ]
    if own_step:
        state = "in which kernels and copies took longer than in the rounds"
        if report.method.cache == Cache.COLD:
            state = "with warm caches"
        text = f"of the step in the profiler's process, {state}: {', '.join(own_step)}"
        notes.append(Text(text, "dim"))
    reasons = [reason for summary in profiled.values() for reason in summary.reasons]
    notes += [Text(line, "yellow") for line in lines(reasons)]
    return notes


def traces(report: RunReport) -> Block | None:
    """Return where the trace of each step was written."""
    written = [
        Text(f"{variant.name}: trace in {variant.goodput.trace}")
        for variant in report.variants
        if variant.goodput and variant.goodput.trace
    ]
    return Group(*written) if written else None


def _cell(column: str, summary: GoodputReport, point: Point | None) -> str:
    value = getattr(summary, column)
    if value is None:
        return ""
    if column == "product" and point:
        value = point.fraction.value  # the same, but always of the step that the roofline is about
    elif column in _SHARES_OF_ROOF and summary.step_source == StepSource.PROFILER:
        return ""
    if column in _SHARES_OF_ROOF:
        return f"{percent_of_roof(value)}%"
    if column == "items_per_s":
        return rate(value)
    return byte_count(value) if column == "peak_bytes" else f"{value:.0%}"


_WORDS = {
    "interpreter": "start of Python",
    "imports": "import of torch",
    "file": "the scenario's file",
}


def job_goodput(report: RunReport) -> Block | None:
    """The jobs of a report, where it has them."""
    jobs = report.from_start
    if jobs is None or not jobs.jobs:
        return None
    summary = columns_table()
    summary.add_column("from start", overflow="fold", min_width=8)
    for head in ("steps", "goodput", "speedup", "ahead after"):
        summary.add_column(head, justify="right", no_wrap=True)
    for job in jobs.jobs:
        summary.add_row(job.variant, *_figures(job))
    rows = [(Text(" "), part) for part in BEFORE_STEPS if _has(jobs, part)]
    rows += [
        (Text(letter, f"not bold {style}"), part)
        for part, (letter, style) in bars.CATEGORIES.items()
        if _has(jobs, part)
    ]
    if _has(jobs, STEPS):
        rows.append((Text(" "), STEPS))
    columns = {job.variant: Whole(_named(job.seconds), job.total_s) for job in jobs.jobs}
    named = [(mark, _WORDS.get(part, part)) for mark, part in rows]
    table = Fitted(PartsTable("of a job", "job", columns, named).of_width)
    return Group(
        Text(_title(report, jobs), "bold"), summary, "", Fitted(table.of_width), *_job_notes(jobs)
    )


def _title(report: RunReport, jobs: FromStart) -> str:
    return (
        f"a job from process start: {jobs.steps:,} steps of {report.baseline}, and of the others "
        "as many items"
    )


def _figures(job: JobGoodput) -> tuple[str, str, str, str]:
    if job.speedup is None:
        return f"{job.steps:,}", share(job), "", ""
    return f"{job.steps:,}", share(job), times(job.speedup), _ahead(job)


def _ahead(job: JobGoodput) -> str:
    if job.ahead_after is None:
        return "never"
    return f"{job.ahead_after:,} steps" if job.ahead_after else "the start"


def _has(jobs: FromStart, part: str) -> bool:
    """Return whether it is worth a row: every part of the start is, of a step what takes a share of
    any job.
    """
    seconds = [(job.seconds.get(part, 0.0), job.total_s) for job in jobs.jobs]
    return any(
        part_s > 0 if part in BEFORE_STEPS else part_s >= LEAST * total_s
        for part_s, total_s in seconds
    )


def _named(seconds: dict[str, float]) -> dict[str, float]:
    return {_WORDS.get(part, part): part_s for part, part_s in seconds.items()}


def _job_notes(jobs: FromStart) -> list[Text]:
    notes = []
    if not jobs.start_known:
        notes.append("the start of the process was not timed: these jobs begin with the build")
    if any(job.goodput is None for job in jobs.jobs):
        notes.append("without a profile nothing says how much of the steps is useful")
    return [Text(note, "dim") for note in notes]
