"""Whole jobs from process start: what each would spend its time on, as a table, and what that makes of the speedups."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gpulab.report.goodput.from_start import FromStart, JobGoodput
from gpulab.report.goodput.job_goodput import BEFORE_STEPS, STEPS
from gpulab.report.report import RunReport
from gpulab.views import bars
from gpulab.views.goodput import UNRELIABLE
from gpulab.views.step_parts import LEAST, PartsTable, Whole
from gpulab.views.text import Glyphs, times

_WORDS = {"interpreter": "start of Python", "imports": "import of torch", "file": "the scenario's file"}


def job_goodput(report: RunReport, glyphs: Glyphs) -> RenderableType | None:
    """The jobs of a report, where it has them."""
    jobs = report.from_start
    if jobs is None or not jobs.jobs:
        return None
    summary = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    summary.add_column("from start", overflow="fold", min_width=8)
    for head in ("steps", "goodput", "speedup", "ahead after"):
        summary.add_column(head, justify="right", no_wrap=True)
    for job in jobs.jobs:
        summary.add_row(glyphs(job.variant), *map(glyphs, _figures(job)))
    rows = [(Text(" "), part) for part in BEFORE_STEPS if _has(jobs, part)]
    rows += [
        (Text(letter, f"not bold {style}"), part)
        for part, (letter, style) in bars.CATEGORIES.items()
        if _has(jobs, part)
    ]
    rows += [(Text(" "), STEPS)] if _has(jobs, STEPS) else []
    columns = {job.variant: Whole(_named(job.seconds), job.total_s) for job in jobs.jobs}
    table = PartsTable("of a job", "job", columns, [(mark, _WORDS.get(part, part)) for mark, part in rows], glyphs)
    return Group(Text(glyphs(_title(report, jobs)), "bold"), summary, "", table, *_notes(jobs))


def _title(report: RunReport, jobs: FromStart) -> str:
    return f"a job from process start: {jobs.steps:,} steps of {report.baseline}, and of the others as many items"


def _figures(job: JobGoodput) -> tuple[str, str, str, str]:
    goodput = "" if job.goodput is None else f"{job.goodput:.0%}{UNRELIABLE if job.reliable is False else ''}"
    if job.speedup is None:
        return f"{job.steps:,}", goodput, "", ""
    ahead = "never" if job.ahead_after is None else f"{job.ahead_after:,} steps" if job.ahead_after else "the start"
    return f"{job.steps:,}", goodput, times(job.speedup), ahead


def _has(jobs: FromStart, part: str) -> bool:
    """Whether it is worth a row: every part of the start is, of a step what takes a share of any job."""
    seconds = [(job.seconds.get(part, 0.0), job.total_s) for job in jobs.jobs]
    return any(part_s > 0 if part in BEFORE_STEPS else part_s >= LEAST * total_s for part_s, total_s in seconds)


def _named(seconds: dict[str, float]) -> dict[str, float]:
    return {_WORDS.get(part, part): part_s for part, part_s in seconds.items()}


def _notes(jobs: FromStart) -> list[Text]:
    notes = []
    if not jobs.start_known:
        notes.append("the start of the process was not timed: these jobs begin with the build")
    if any(job.goodput is None for job in jobs.jobs):
        notes.append("without a profile nothing says how much of the steps is useful")
    return [Text(note, "dim") for note in notes]
