"""Prints what one run leaves: its result, its roofline, and where its file is. It is the same of a
run that was just made and of one that is read from its file: nothing here starts one.
"""

from __future__ import annotations

from gpulab.draw.blocks import Block, Group, Text
from gpulab.features import blocks_of, part, views
from gpulab.features.goodput.operation_table import full_tables, operations
from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import ceilings, roofline_blocks
from gpulab.headless.output import Terminal
from gpulab.options import Options
from gpulab.report.feature import Section
from gpulab.report.report import RunReport
from gpulab.show.parts import Shown, Target, result
from gpulab.show.raw_times import raw_times
from gpulab.show.short_result import short_result
from gpulab.show.view import failures


def show_failures(report: RunReport, terminal: Terminal) -> None:
    """Print to stderr what a failure left: before the result, which ends with the cause."""
    terminal.err.print(failures(report), end="", soft_wrap=True)


def show_report(report: RunReport, terminal: Terminal, options: Options) -> None:
    """Print the result of one run: in short, or all of it."""
    tables = _tables_of_operations(report, options)
    if options.verbose:
        terminal.show(result(Shown(report, Target.TERMINAL, operations=tables)))
    else:
        asked_for = [*_asked_for(report, options), *(tables or ())]
        folds = terminal.results.is_terminal
        terminal.show(short_result(report, asked_for, with_operations=tables is None, folds=folds))
    _show_checklist(report, terminal, options)
    if report.run_file:
        terminal.say(f"run file: {report.run_file}")
    terminal.say("")
    if options.raw:
        show_raw(report, terminal)
        terminal.say("")


def _show_checklist(report: RunReport, terminal: Terminal, options: Options) -> None:
    if options.checklist:
        terminal.show(Group(part("bill.checklist:checklists", report), ""))


def _tables_of_operations(report: RunReport, options: Options) -> list[Block] | None:
    """As --top asks for them; None where it is not given."""
    if options.top is None:
        return None
    nothing = "no operations were recorded: no profile (off, a smoke run, or less than a second)"
    return full_tables(report, options.top) or [Text(nothing, "yellow")]


def show_raw(report: RunReport, terminal: Terminal) -> None:
    terminal.show(Group(*raw_times(report)))


def show_markdown(report: RunReport, terminal: Terminal) -> None:
    """Print the comparison, what weakens it, and the raw times in Markdown."""
    # it brings what colours code, which takes a while and nobody else needs
    from gpulab.show.markdown import summary

    terminal.say(*summary(report))


def _asked_for(report: RunReport, options: Options) -> list[Block]:
    """Return what flags of the command ask for by name."""
    places = {"goodput.view:traces", "goodput.view:job_goodput"}
    if options.telemetry not in (None, "off"):
        places.add("telemetry.view:solo_runs")
    if options.profile in ("on", "all") and not report.functions:
        places.add("goodput.view:goodput")
        if options.top is None:
            places.add("goodput.operation_table:operations")
    asked_for = [
        view
        for view in views(*Section)
        if view.place in places or (view.flag and options.given(view.flag))
    ]
    return blocks_of(asked_for, report)


def show_calibration(report: RunReport, terminal: Terminal, *, links_only: bool) -> None:
    """Print the ceilings of a device and its roofline; `links_only`: of links nothing is drawn."""
    terminal.results.print(ceilings(report))
    roofline = roofline_of(report)
    if roofline is not None and not links_only:
        terminal.show(Group(*roofline_blocks(roofline)))
    terminal.say(f"run file: {report.run_file}")


def show_program(report: RunReport, terminal: Terminal, options: Options) -> None:
    """Print the result of a program that was followed."""
    tables = _tables_of_operations(report, options)
    if options.verbose and tables is None:
        table = operations(report, most=40)
        tables = [table] if table else None
    shown = Shown(report, Target.TERMINAL, operations=tables, verbose=options.verbose)
    terminal.show(result(shown))
    _show_checklist(report, terminal, options)
    terminal.say(f"run file: {report.run_file}")
