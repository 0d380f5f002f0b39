"""What a run is shown as: one list of parts, in the order in which they are read. Each target takes
those that are for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Flag, auto
from typing import TYPE_CHECKING

from gpulab.catalog.kernels import kernels_of
from gpulab.catalog.reader import read_text
from gpulab.catalog.source import UnreadableError
from gpulab.catalog.view import best_comparison
from gpulab.core.jobs import RunRequest, ScenarioFile, subject_of
from gpulab.core.statuses import BoundKind, Shows
from gpulab.core.units import plural
from gpulab.draw.blocks import Block, Group, Heading, Markdown, Table, Text, rows_table
from gpulab.features import blocks_of, part, present, views
from gpulab.features.checks.view import checks, doubts
from gpulab.features.roofline.report import roofline_of, roofline_of_operations
from gpulab.features.roofline.view import ceiling_table, limit_table, limits, roofline_blocks
from gpulab.report.feature import Section, View
from gpulab.report.live import LiveReport
from gpulab.report.report import RunReport, VariantReport
from gpulab.show.facts import command, facts, source_of
from gpulab.show.figures import times_figure
from gpulab.show.headline import outcome
from gpulab.show.raw_times import raw_times
from gpulab.show.terminal import fits, height, plain_text
from gpulab.show.view import (
    against_earlier_runs,
    below_table,
    bounds,
    claims,
    clocks,
    comparison_table,
    failure_causes,
    failures,
    figures,
    header,
    method,
    note_lines,
    pairs_note,
    required,
    telemetry_line,
    texts,
    why_it_ended,
)
from gpulab.stats.comparison import Comparison

if TYPE_CHECKING:
    from rich.console import RenderableType


class Target(Flag):
    """The medium on which a run is shown."""

    SHORT = auto()
    """Thirty lines on a terminal."""
    TERMINAL = auto()
    SCREEN = auto()
    PAGE = auto()
    MARKDOWN = auto()


EVERYWHERE = Target.SHORT | Target.TERMINAL | Target.SCREEN | Target.PAGE | Target.MARKDOWN
_WHOLE_TARGETS = Target.TERMINAL | Target.SCREEN | Target.PAGE
_FILES = Target.PAGE | Target.MARKDOWN


@dataclass(frozen=True)
class Shown:
    """A run, and what is known of it where it is shown: of all but the report there may be
    nothing.

    `together`: the run of all fixes that gained in this one. `live` has the panels of a screen,
    `predicted` the answer to a prediction. `operations`: in place of the table of operations.
    """

    report: RunReport
    target: Target
    width: int = 100
    request: RunRequest | None = None
    problem: str = ""
    """Why that is not known, of which a file tells."""
    together: RunReport | None = None
    live: LiveReport | None = None
    predicted: Sequence[Block] = ()
    operations: Sequence[Block] | None = None
    verbose: bool = True
    variants: Sequence[str] | None = None
    """Those that a table has rows for; None: all of them."""

    @property
    def is_program(self) -> bool:
        return self.report.get("program") is not None


_LEAST_BAR, _MOST_BAR, _WIDEST = 14, 40, 1_000
"""Columns from which on the table of limits says what to change."""


@dataclass(frozen=True)
class Part:
    """One part: its heading, its blocks, and the targets that it is for."""

    title: str
    blocks: Callable[[Shown], Iterable[Block | None]]
    targets: Target = EVERYWHERE


def parts_of(shown: Shown) -> Iterator[tuple[str, list[Block]]]:
    """(heading, blocks) of all parts in which there is something."""
    for each in PARTS:
        if shown.target in each.targets:
            blocks = [block for block in each.blocks(shown) if block is not None]
            if blocks:
                yield each.title, blocks


def result(shown: Shown) -> Group:
    """All parts below each other, each but the first below its heading."""
    report = shown.report
    blocks: list[Block] = [header(report), ""]
    for number, (title, of_part) in enumerate(parts_of(shown)):
        blocks += [Heading(title)] if number else []
        blocks += of_part
        blocks.append("")
    return Group(*blocks[:-1])


def lesson_figure(report: RunReport) -> Block | None:
    """Return what the scenario shows other than speedups: first steps, clocks, or memory."""
    if report.shows == Shows.CLOCKS:
        return clocks(report)
    shown = [view for view in views(*Section) if view.lesson == report.shows]
    return next(iter(blocks_of(shown, report)), None)


def _result(shown: Shown) -> Iterator[Block | None]:
    """The verdict, the times, and what a lesson shows in their place."""
    report = shown.report
    if shown.is_program:
        yield from texts(why_it_ended(report))
        yield from blocks_of(views(Section.PROGRAM), report)
        yield telemetry_line(report) or None
        yield from blocks_of(views(Section.RANKS), report)
        return
    compared = _headlines(shown)
    if shown.target in _FILES:
        yield from texts([*failure_causes(report), *required(report)])
    else:
        yield from outcome(report, compared)
    if shown.predicted:
        yield from (*shown.predicted, "")
    yield from blocks_of(views(Section.TRIED), report, shown.together)
    yield from _times(shown)
    yield lesson_figure(report)
    if shown.target == Target.PAGE and (left := failures(report)):
        yield left


def _headlines(shown: Shown) -> Sequence[Comparison]:
    """The comparisons that have a line above all else: in short that of the best, unless the line
    of sustained speedups stands there.
    """
    report = shown.report
    if shown.target == Target.SCREEN:
        return report.first_comparisons
    sustained = (entry.sustained for entry in report.comparisons)
    heading = any(entry.headline_reason for entry in sustained if entry)
    if shown.target != Target.SHORT or heading:
        return ()
    best = best_comparison(report)
    return [each for each in report.first_comparisons if best and each.variant == best.variant]


def _times(shown: Shown) -> Iterator[Block | None]:
    report = shown.report
    if not report.timed or not (report.compares or shown.target == Target.MARKDOWN):
        return
    note = pairs_note(report)
    pairs = Text(note, "dim") if note else None
    if shown.live is not None and (panel := _panel("live.times:TIMES", shown)):
        yield from (panel, pairs)  # whose table is a detail
        return
    if shown.target == Target.PAGE:
        yield times_figure(report)
    table = comparison_table(report, shown.variants)
    if shown.target == Target.SHORT and len(report.variants) > 1:
        room = shown.width - max(map(len, plain_text(table, _WIDEST).splitlines())) - 2
        if room >= _LEAST_BAR:
            table = comparison_table(report, shown.variants, bars=min(room, _MOST_BAR))
    yield table
    if shown.target != Target.SHORT:  # where it stands last of all, since rows are worth more
        yield pairs
    if shown.variants is not None:
        left = plural(len(report.variants) - len(shown.variants), "more variant")
        yield Text(f"and {left}: --verbose", "dim")


def _panel(
    place: str, shown: Shown, height: int | None = None, *, headed: bool = True
) -> Block | None:
    """A panel of the live screen, such as "live.times:TIMES"."""
    name, _, constant = place.partition(":")
    module = present(name)
    if module is None or shown.live is None:
        return None
    drawn = getattr(module, constant)
    how = {"width": shown.width, "height": height, "headed": headed}
    made: Block | None = part("live.screen:panel_view", drawn, shown.live, **how)
    return made


def _time(shown: Shown) -> Iterator[Block | None]:
    """Yield where the time of a step goes."""
    report = shown.report
    if shown.target == Target.SHORT:
        yield from _time_in_short(shown)
        return
    has_parts = not shown.is_program and any(variant.goodput for variant in report.variants)
    panel = _panel("goodput.panel:PARTS", shown, headed=False) if has_parts else None
    if panel is None:
        yield from _tables_of_time(shown)
    else:
        yield panel  # whose tables are details


def _tables_of_time(shown: Shown) -> Iterator[Block | None]:
    report = shown.report
    if not shown.is_program:  # whose bill has all of its time
        # where it is the lesson, it stands above
        yield from blocks_of(_others(report, Section.TIME), report)
    if shown.operations is None:
        yield from blocks_of(views(Section.OPERATIONS), report)
    else:
        yield from shown.operations
    yield from blocks_of(views(Section.TRACES), report)


def _time_in_short(shown: Shown) -> Iterator[Block | None]:
    """Yield where the time of functions goes, which are compared with nothing."""
    if not shown.report.functions:
        return
    yield part("goodput.view:goodput", shown.report, with_notes=False)
    if shown.operations is None:
        yield part("bill.step_view:steps", shown.report.variants[:3])


def _others(report: RunReport, *sections: Section) -> list[View]:
    return [view for view in views(*sections) if view.lesson != report.shows]


def _limits(shown: Shown) -> Iterator[Block | None]:
    """Yield what limits each variant, and what to do about it; on a page below the roofline."""
    report = shown.report
    roofline = roofline_of(report)
    draws = shown.target in Target.PAGE | Target.TERMINAL and shown.verbose
    if draws and roofline is not None and (roofline.points or not report.variants):
        yield from roofline_blocks(roofline)
    in_lines = shown.target == Target.SCREEN or not shown.verbose
    if in_lines:
        yield _limit_table(shown)
    explained = _explained_variants(shown) if in_lines else report.variants
    yield from _limit_lines(explained, with_bill=in_lines)
    if not in_lines:
        yield part("bill.step_view:steps", report.variants)
    for variant in report.variants if draws else ():
        operations = roofline_of_operations(report, variant.name)
        if operations is not None:
            heading = Text(f"operations of {variant.name}", "bold")
            yield Group("", heading, *roofline_blocks(operations))


def _limit_table(shown: Shown) -> Table | None:
    names = shown.variants
    variants = [each for each in shown.report.variants if names is None or each.name in names]
    return limit_table(variants)


def _limit_lines(variants: Iterable[VariantReport], *, with_bill: bool) -> Iterator[Block | None]:
    """Yield why each is no faster, and the largest rows of its step."""
    for variant in variants:
        rows = part("bill.step_view:lines", variant) if with_bill else None
        cause = variant.cause
        if not rows or cause is None or cause.bound != BoundKind.UNKNOWN:
            yield limits([variant]) or None
        yield from rows or ()


def _explained_variants(shown: Shown) -> list[VariantReport]:
    """The baseline and the best; of functions the first; on a screen all where none is best."""
    report = shown.report
    if report.functions:
        return list(report.variants[:3])
    best = best_comparison(report)
    if best is None and shown.target != Target.SHORT:
        return list(report.variants)
    named = {report.baseline, best.variant if best else None}
    return [variant for variant in report.variants if variant.name in named]


def _counters(shown: Shown) -> Iterator[Block | None]:
    yield from blocks_of(views(Section.COUNTERS), shown.report)


def _trust(shown: Shown) -> Iterator[Block | None]:
    """Grades and claims, what explains and weakens the result, how it was measured, the checks."""
    report = shown.report
    if shown.is_program:
        yield from texts(note_lines(report))
        return
    in_short = shown.target == Target.SHORT
    below = below_table(report)
    if shown.target not in _FILES:  # which have no headline to name them
        below = [line for line in below if line not in doubts(report)]
    if in_short and _headlines(shown):  # which names the best
        below = [line for line in below if line[0] != f"best: {report.best}"]
    lines = [*below, *claims(report), *against_earlier_runs(report), *figures(report)]
    lines += [*bounds(report), *note_lines(report)]
    if report.method.epochs and not in_short:
        lines.append((method(report), "dim"))
    if in_short and report.compares and (note := pairs_note(report)):
        lines.append((note, "dim"))
    yield from texts(lines)
    if not in_short:
        yield checks(report)


def _details(shown: Shown) -> Iterator[Block | None]:
    report = shown.report
    if shown.live is not None:
        for block in (comparison_table(report), *_tables_of_time(shown)):
            yield from (block, "")
    if shown.target == Target.SCREEN:
        explained = _explained_variants(shown)
        rest = [variant for variant in report.variants if variant not in explained]
        yield from _limit_lines(rest, with_bill=True)
    others = _others(report, Section.RESOURCES, Section.ALONE, Section.JOBS)
    for block in blocks_of(others, report):
        yield from (block, "")
    if report.ceilings and report.ceilings.ceilings and shown.target == Target.PAGE:
        yield ceiling_table(report.ceilings.ceilings)


def _questions(shown: Shown) -> Iterator[Block]:
    yield from part("course.view:questions_of", shown.report, shown.width) or ()


def _lesson(shown: Shown) -> Iterator[Block]:
    subject = subject_of(shown.request.job) if shown.request else None
    if not isinstance(subject, ScenarioFile):
        return
    try:
        text = subject.lesson or read_text(subject.judge or subject.source).lesson
    except UnreadableError:
        return
    if rest := text.partition("\n")[2].strip():
        # parts of a page have headings of the level that parts of a lesson have
        yield Markdown(rest.replace("\n## ", "\n### "))
    if subject.claim:
        yield Text(f"Claim: {subject.claim}")


def _code(shown: Shown) -> Iterator[Block]:
    """Each variant with the lines that differ from the baseline."""
    report, source = shown.report, source_of(shown.request)
    if source:
        names = tuple(variant.name for variant in report.variants)
        kernels = kernels_of(source, names, report.params)
        yield from part("code.view:code_parts", source, report, kernels) or ()
    elif shown.problem:
        yield Text(f"no source: {shown.problem}", "dim")


def _environment(shown: Shown) -> Iterator[Block]:
    table = rows_table()
    for name, value in facts(shown.report):
        if value:
            table.add_row(Text(name, "dim"), Text(value))
    yield table
    if shown.request:
        yield Heading("Run it again")
        yield Text(command(shown.request, shown.report), no_wrap=True)


def _file(shown: Shown) -> Iterator[Block]:
    """Yield the last lines of a screen: where the run is, and what a failure left."""
    yield Text(f"run file: {shown.report.run_file}", "dim")
    if left := failures(shown.report):
        yield left


PARTS = (
    Part("result", _result),
    Part("limits", _limits),
    Part("where the time goes: shares of a step", _time, EVERYWHERE ^ Target.MARKDOWN),
    Part("hardware counters", _counters, _WHOLE_TARGETS),
    Part("trust", _trust),
    Part("questions of the course", _questions, Target.SCREEN),
    Part("memory, kernels, tuning, runs alone", _details, _WHOLE_TARGETS),
    Part("lesson", _lesson, Target.PAGE),
    Part("code", _code, _FILES),
    Part("raw times", lambda shown: raw_times(shown.report), Target.MARKDOWN),
    Part("environment", _environment, _FILES),
    Part("file", _file, Target.SCREEN),
)
"""Verdict, why, what to do, trust, questions, details, and where it is from."""


_TWO_COLUMNS, _FEWEST_RIGHT, _MOST_RIGHT = 106, 46, 80
"""Columns from which on the processes are shown beside the result, and how many they have."""


def on_screen(shown: Shown) -> Block:
    """The result; where there is room, at its right the speedups and times of the processes that it
    comes from.
    """
    right = min(max(shown.width * 2 // 5, _FEWEST_RIGHT), _MOST_RIGHT)
    left = shown.width - right - 2
    panels = _processes(replace(shown, width=right)) if shown.width >= _TWO_COLUMNS else []
    if not panels:
        return result(shown)
    blocks = result(replace(shown, width=left)).renderables
    start, end = _beside_panels(blocks, left, height(Group(*panels), right))
    columns = rows_table()
    columns.add_column(width=left)
    columns.add_column(width=right, no_wrap=True)
    columns.add_row(Group(*blocks[start:end]), Group(*panels))
    return Group(*blocks[:start], columns, *blocks[end:])


def _beside_panels(blocks: Sequence[RenderableType], width: int, rows: int) -> tuple[int, int]:
    """The first blocks that stand beside panels of that many rows: between tables that need all of
    the width, and at least half as high.
    """
    start = 0
    for end, block in enumerate(blocks):
        if fits(block, width):
            continue
        if 2 * height(Group(*blocks[start:end]), width) >= rows:
            return start, end
        start = end + 1
    return start, len(blocks)


def _processes(shown: Shown) -> list[Block]:
    run = shown.live
    if run is None or shown.is_program:
        return []
    panels: list[Block | None] = []
    comparison = run.main_comparison
    if comparison is not None and (ratios := run.ratios(comparison)):
        height = min(len(ratios), 24) + 4 + bool(run.predicted)
        panels.append(_panel("live.narrowing:NARROWING", shown, height))
    if any(run.detail.times_s.values()):
        height = 2 + 4 * len(run.variants)
        panels.append(_panel("live.processes:PROCESSES", shown, height))
    return [drawn for drawn in panels if drawn is not None]
