"""A program that was followed, in lines: how it ended, its steps, and what following it cost."""

from __future__ import annotations

from collections.abc import Iterator

from gpulab.core.failures import signal_name
from gpulab.core.units import byte_count, plus_minus, seconds
from gpulab.draw.blocks import Table, Text, rows_table
from gpulab.features.program.events import StepMark
from gpulab.features.program.result import ProgramReport
from gpulab.report.report import RunReport

_MARKS = {
    StepMark.CALL: "calls of gpulab.step()",
    StepMark.ANNOTATION: "steps marked by StepTraceAnnotation",
    StepMark.OPTIMIZER: "steps of the optimizer",
    StepMark.MODULE: "outermost calls of a module",
}
_MOST_KINDS = 4


def program_view(report: RunReport) -> Table | None:
    """None of a run that followed no program."""
    program = report.program
    if program is None:
        return None
    table = rows_table()
    for name, words in rows(report, program):
        table.add_row(Text(name, "bold"), Text(words))
    return table


def rows(report: RunReport, program: ProgramReport) -> Iterator[tuple[str, str]]:
    """Yield names and figures, as far as there are some."""
    yield "ended", ended(program)
    if program.mark is None:
        return
    words = f"{program.steps:,} {_MARKS[program.mark]}"
    if program.wall_s is not None and program.code != 0:
        words = f"at least {words}"  # one that was killed has not told of its newest ones
    if program.first_step_s is not None:
        words += f"; the first ended after {seconds(program.first_step_s)}"
    yield "steps", words
    if len(program.kinds) > 1:
        yield "kinds", ", ".join(_kinds(program))
    time = report.variants[0].time_s if report.variants else None
    if time is not None:
        words = f"{seconds(time.value)} {plus_minus(time)}".rstrip()
        if len(program.kinds) > 1:
            words += (
                ", a mean over kinds" if program.mixed else f" of kind {next(iter(program.kinds))}"
            )
        yield "step time", f"{words}, without the profiler"
    if program.peak_bytes:
        yield "device memory", f"at most {byte_count(program.peak_bytes)} allocated by torch"
    if program.loop_s:
        share = program.following_s / program.loop_s
        words = f"{seconds(program.following_s)} of the {seconds(program.loop_s)} of its steps"
        yield "following", f"{words} ({share:.1%}), recordings included; not in the time of a step"


def _kinds(program: ProgramReport) -> Iterator[str]:
    """Yield the most frequent kinds, and how many steps had each."""
    for kind, count in list(program.kinds.items())[:_MOST_KINDS]:
        yield f"{count:,} {kind}"
    left = len(program.kinds) - _MOST_KINDS
    if left > 0:
        yield f"{left:,} more"


def ended(program: ProgramReport) -> str:
    """Say how the program ended, and after how long."""
    if program.wall_s is None:
        return "not yet"
    words = f"exit code {program.code}"
    if program.signal:
        words = f"by {signal_name(program.signal)}"
    words += f" after {seconds(program.wall_s)}"
    user, system = seconds(program.user_s), seconds(program.system_s)
    words += f" (CPU {user} user, {system} system"
    if program.resident_bytes:
        words += f"; {byte_count(program.resident_bytes)} resident"
    return f"{words})"
