"""Prints what one run leaves: its result, its roofline, and where its file is. It is the same of a
run that was just made and of one that is read from its file: nothing here starts one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gpulab.core.run_file import RunFileError
from gpulab.core.statuses import GroupBy
from gpulab.draw.blocks import Fitted, Text
from gpulab.features import views
from gpulab.features.goodput.operation_table import MOST_ROWS, TableChoice
from gpulab.features.goodput.operations import full_tables
from gpulab.features.roofline.ceilings_view import ceilings
from gpulab.features.roofline.report import (
    NO_ROOFS,
    lacks_roofs,
    roofline_of,
    roofline_of_operations,
)
from gpulab.features.roofline.view import causes, reasons, roofline_view
from gpulab.headless.options import Options
from gpulab.headless.output import Terminal
from gpulab.report.report import RunReport
from gpulab.show.parts import TABLES, part, tables_of
from gpulab.show.program_result import program_result
from gpulab.show.raw_times import RAW_NOTE, raw_table
from gpulab.show.results import failures, result
from gpulab.show.short_result import ShortResult

if TYPE_CHECKING:
    from gpulab.draw.blocks import Block

_HEIGHT, _MOST_WIDTH = 24, 160


def show_failures(report: RunReport, terminal: Terminal) -> None:
    """Print to stderr what a failure left: before the result, which ends with the cause."""
    terminal.err.print(failures(report), end="", soft_wrap=True)


def show_report(report: RunReport, terminal: Terminal, options: Options) -> None:
    """Print the result of one run: in short, or all of it."""
    tables = _tables_of_operations(report, options)
    if options.verbose:
        terminal.show(result(report, with_operations=not tables))
        for table in tables:
            terminal.say("")
            terminal.show(table)
        if any(variant.roofline for variant in report.variants):
            show_roofline(report, terminal)
        if undeclared := causes(report.variants):
            terminal.show(undeclared)
        show_operations_on_roofs(report, terminal)
    else:
        asked_for = [*_asked_for(report, options), *tables]
        wraps = terminal.results.is_terminal
        short = ShortResult(report, asked_for, with_operations=not tables, wraps=wraps)
        terminal.show(Fitted(short.of_width))
    if options.checklist:
        terminal.show(part("findings.checklist_view:checklists", report))
        terminal.say("")
    if report.run_file:
        terminal.say(f"run file: {report.run_file}")
    terminal.say("")
    if options.raw:
        show_raw(report, terminal)
        terminal.say("")


def _tables_of_operations(report: RunReport, options: Options) -> list[Block]:
    """As flags ask for them; none where no flag does."""
    if not options.asks_for_operations:
        return []
    choice = TableChoice(
        most=options.top or MOST_ROWS,
        sort=options.sort,
        group=options.group_by or GroupBy.OPERATION,
    )
    nothing = "no operations were recorded: no profile (off, a smoke run, or less than a second)"
    return full_tables(report, choice) or [Text(nothing, "yellow")]


def show_raw(report: RunReport, terminal: Terminal) -> None:
    """Print the distribution of the raw times."""
    with _of_run_file(terminal):
        terminal.show(raw_table(report))
        terminal.results.print(RAW_NOTE, style="dim", soft_wrap=not terminal.results.is_terminal)


def show_markdown(report: RunReport, terminal: Terminal) -> None:
    """Print the comparison, what weakens it, and the raw times in Markdown."""
    # it brings what colours code, which takes a while and nobody else needs
    from gpulab.show.markdown import raw_times, summary

    terminal.say(*summary(report))
    with _of_run_file(terminal):
        terminal.say(*raw_times(report))


@contextmanager
def _of_run_file(terminal: Terminal) -> Iterator[None]:
    try:
        yield
    except RunFileError as error:
        terminal.note(str(error), "yellow")


def _asked_for(report: RunReport, options: Options) -> Iterator[Block]:
    """What flags of the command ask for by name."""
    places = {"goodput.view:traces", "goodput.view:job_goodput"}
    if options.telemetry not in (None, "off"):
        places.add("telemetry.view:solo_runs")
    if options.profile in ("on", "all") and not report.functions:
        places.add("goodput.view:goodput")
        if not options.asks_for_operations:
            places.add("goodput.operations:operations")
    asked_for = [
        view
        for view in views(*TABLES)
        if view.place in places or (view.flag and getattr(options, view.flag))
    ]
    return tables_of(report, asked_for)


def show_calibration(report: RunReport, terminal: Terminal, *, links_only: bool) -> None:
    """Print the ceilings of a device and its roofline; `links_only`: of links nothing is drawn."""
    terminal.results.print(ceilings(report))
    if not links_only:
        show_roofline(report, terminal)
    terminal.say(f"run file: {report.run_file}")


def show_program(report: RunReport, terminal: Terminal, options: Options) -> None:
    """Print the result of a program that was followed."""
    tables = _tables_of_operations(report, options)
    terminal.show(program_result(report, verbose=options.verbose, tables=tables))
    if options.checklist:
        terminal.show(part("findings.checklist_view:checklists", report))
    terminal.say(f"run file: {report.run_file}")


def show_roofline(report: RunReport, terminal: Terminal) -> None:
    """Print the roofline of a run, as wide as the terminal is."""
    roofline = roofline_of(report)
    if roofline is None:
        return
    console = terminal.results
    width = min(console.width, _MOST_WIDTH)
    drawn = roofline_view(roofline, width=width, height=_HEIGHT)
    console.print("", drawn, sep="\n", soft_wrap=True)
    terminal.show(reasons(roofline.points))


def show_operations_on_roofs(report: RunReport, terminal: Terminal) -> None:
    """Print the operations of each profiled variant below the roofs."""
    console = terminal.results
    width = min(console.width, _MOST_WIDTH)
    for variant in report.variants:
        roofline = roofline_of_operations(report, variant.name)
        if roofline is None and lacks_roofs(variant):
            terminal.say("", f"operations of {variant.name}: {NO_ROOFS}")
        if roofline is None:
            continue
        drawn = roofline_view(roofline, width=width, height=_HEIGHT)
        head = Text(f"operations of {variant.name}", "bold")
        console.print("", head, drawn, sep="\n", soft_wrap=True)
