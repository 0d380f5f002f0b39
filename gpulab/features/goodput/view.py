"""Where the time of a step goes: a bar a variant; and whole jobs from process start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from gpulab.core.statuses import Cache
from gpulab.core.units import percent_of_roof, rate, seconds, times
from gpulab.draw import bars
from gpulab.draw.blocks import Block, Fitted, Group, Text, columns_table, rows_table
from gpulab.draw.table import first_and_last
from gpulab.features.goodput.findings import goodput_uncertain
from gpulab.features.goodput.job import BEFORE_STEPS, STEPS
from gpulab.features.goodput.result import FromStart, GoodputReport, JobGoodput, StepSource
from gpulab.report.report import RunReport, VariantReport
from gpulab.report.sentences import lines

UNRELIABLE = "?"
_LEAST = 0.01
"""A share that is named beside its letter, or has a row."""
_NARROW = 80
"""Columns from which on bars grow with the width."""
_BUSY = 0.05
"""A share of the time off the CPU that explains an unreliable profile."""
_FAR = 0.2
"""A difference of two ways to measure the share of computing, beyond which neither is drawn."""


def parts_of(summary: GoodputReport) -> list[bars.StepPart]:
    """The parts of a step."""
    return bars.categories(summary.partition.items())


_COLUMNS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("efficiency", "u of roof", lambda share: f"{percent_of_roof(share)}%"),
    ("hidden", "hidden", "{:.0%}".format),
    ("items_per_s", "items/s", rate),
)


def _cell(value: float | None, text: Callable[[float], str]) -> str:
    return "" if value is None else text(value)


def goodput(report: RunReport, *, with_notes: bool = True) -> Block | None:
    """The parts of each step that was profiled, and what must be known of them; None where none
    was.
    """
    profiled = [
        (variant, variant.goodput)
        for variant in report.variants
        if variant.goodput and variant.goodput.goodput is not None
    ]
    if not profiled:
        return None
    columns = {
        head: [_cell(getattr(summary, field), text) for _, summary in profiled]
        for field, head, text in _COLUMNS
    }
    columns = {head: texts for head, texts in columns.items() if any(texts)}

    def of_width(width: int) -> Iterator[Block]:
        cells = bars.CELLS + min(max(0, width - _NARROW), bars.CELLS)
        table = columns_table()
        table.add_column("computing", overflow="fold", min_width=9)
        table.add_column("", justify="right", no_wrap=True)
        table.add_column("where the time goes", no_wrap=True, min_width=cells)
        for head in columns:
            table.add_column(head, justify="right", no_wrap=True)
        drawn: list[bars.StepPart] = []
        for (variant, summary), *figures in zip(profiled, *columns.values(), strict=True):
            if why := why_not_known(variant):
                unknown = Text(f"not known: {why}", "yellow")
                table.add_row(variant.name, UNRELIABLE, unknown, *figures)
                continue
            drawn += parts_of(summary)
            bar = bars.parts_bar(parts_of(summary), cells, computing=share(summary))
            if summary.reliable is False:
                bar.style = "dim"
            table.add_row(variant.name, share(summary), bar, *figures)
        yield from (table, _legend(drawn))
        if with_notes:
            yield from _notes(report, {variant.name: summary for variant, summary in profiled})

    return Fitted(of_width)


def _legend(parts: Iterable[bars.StepPart]) -> Text:
    """The letters of the parts that are seen."""
    seen = {part.words: part.mark for part in parts if part.share >= _LEAST}
    named = [
        Text.assemble(seen[name], f" {bars.WORDS.get(name, name)}")
        for name in bars.CATEGORIES
        if name in seen
    ]
    return Text("  ").join(named)


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


def share(summary: GoodputReport | JobGoodput) -> str:
    """The share in which it computes, with a question mark where it is not certain within 5 points;
    nothing where there is none.
    """
    if summary.goodput is None:
        return ""
    return f"{summary.goodput:.0%}{UNRELIABLE * (summary.reliable is False)}"


def _notes(report: RunReport, profiled: dict[str, GoodputReport]) -> Iterator[Text]:
    summaries = profiled.values()
    if any(summary.hidden is not None for summary in summaries):
        yield Text("hidden: the share of copies behind other work", "dim")
    if unmarked := [name for name, summary in profiled.items() if not summary.marked]:
        where = f"in {', '.join(unmarked)} " * (len(unmarked) < len(profiled))
        yield Text(
            f"{where}nothing is marked useful (lab.useful()), so everything that torch computes "
            "counts",
            "dim",
        )
    own_step = [
        name for name, summary in profiled.items() if summary.step_source == StepSource.PROFILER
    ]
    if own_step:
        state = "in which kernels and copies took longer than in the rounds"
        if report.method.cache == Cache.COLD:
            state = "with warm caches"
        yield Text(f"of the step in the profiler's process, {state}: {', '.join(own_step)}", "dim")
    for line in lines([reason for summary in summaries for reason in summary.reasons]):
        yield Text(line, "yellow")


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
        shares = []
        for part in parts:
            if part.share >= _LEAST / 2:
                words = f" {bars.WORDS.get(part.words, part.words)} {part.share:.0%}"
                waits = " (waits)" * (part.words in waiting)
                shares.append(Text.assemble(part.mark, words, waits))
        table.add_row(name, bars.parts_bar(parts), Text(", ").join(shares))
    heading = "phase share, an upper bound" if report.on_gpu else "phase share"
    return Group(Text(heading, "bold"), table)


def traces(report: RunReport) -> Block | None:
    """Return where the trace of each step was written."""
    written = [
        Text(f"{variant.name}: trace in {variant.goodput.trace}")
        for variant in report.variants
        if variant.goodput and variant.goodput.trace
    ]
    return Group(*written) if written else None


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
        speedup = "" if job.speedup is None else times(job.speedup)
        summary.add_row(job.variant, f"{job.steps:,}", share(job), speedup, _ahead(job))
    title = (
        f"a job from process start: {jobs.steps:,} steps of {report.baseline}, and of the others "
        "as many items"
    )
    return Group(Text(title, "bold"), summary, "", _parts_of_jobs(jobs), *_job_notes(jobs))


def _ahead(job: JobGoodput) -> str:
    if job.speedup is None:
        return ""
    if job.ahead_after is None:
        return "never"
    return f"{job.ahead_after:,} steps" if job.ahead_after else "the start"


def _parts_of_jobs(jobs: FromStart) -> Block:
    """Seconds and shares of what every start has, and of a step what takes a share of any job."""
    shown = first_and_last(jobs.jobs)
    table = columns_table()
    table.add_column("of a job", vertical="bottom", overflow="fold")
    for job in shown:
        table.add_column(job.variant, justify="right", overflow="fold", vertical="bottom")
    for part in (*BEFORE_STEPS, *bars.CATEGORIES, STEPS):
        least = 0.0 if part in BEFORE_STEPS else _LEAST
        if all(job.seconds.get(part, 0.0) <= least * job.total_s for job in jobs.jobs):
            continue
        letter, style = bars.CATEGORIES.get(part, (" ", ""))
        words = _WORDS.get(part, bars.WORDS.get(part, part))
        cells = (_part(job.seconds.get(part), job.total_s) for job in shown)
        table.add_row(Text.assemble((letter, f"not bold {style}"), f" {words}"), *cells)
    table.add_row(Text("  job", "bold"), *(f"{seconds(job.total_s)}     " for job in shown))
    omitted = ", ".join(job.variant for job in jobs.jobs if job not in shown)
    return Group(table, *[Text(f"not shown: {omitted}", "dim")] * bool(omitted))


def _part(part_s: float | None, total_s: float) -> str:
    return "" if part_s is None else f"{seconds(part_s)} {part_s / total_s:4.0%}"


def _job_notes(jobs: FromStart) -> Iterator[Text]:
    if not jobs.start_known:
        yield Text("the start of the process was not timed: these jobs begin with the build", "dim")
    if any(job.goodput is None for job in jobs.jobs):
        yield Text("without a profile nothing says how much of the steps is useful", "dim")
