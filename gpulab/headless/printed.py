"""What a finished run prints: its result, its roofline, and where its file is."""

from __future__ import annotations

from gpulab.features.roofline.report import roofline_of
from gpulab.features.roofline.view import causes, reasons, roofline_view
from gpulab.headless.output import Terminal
from gpulab.report.report import RunReport
from gpulab.report.results import failures, result

_HEIGHT, _MOST_WIDTH = 24, 160


def show_failures(report: RunReport, terminal: Terminal) -> None:
    """Print to stderr what a failure left: before the result, which ends with the cause."""
    terminal.err.print(failures(report), end="", soft_wrap=True)


def show_report(report: RunReport, terminal: Terminal, *, verbose: bool = False) -> None:
    """Print the result of one run; `verbose`: with all notes and every check."""
    terminal.show(result(report, verbose=verbose))
    if any(variant.roofline for variant in report.variants):
        show_roofline(report, terminal)
    if undeclared := causes(report.variants):
        terminal.show(undeclared)
    terminal.say(*([f"run file: {report.run_file}"] if report.run_file else []), "")


def show_roofline(report: RunReport, terminal: Terminal) -> None:
    """Print the roofline of a run, as wide as the terminal is."""
    roofline = roofline_of(report)
    if roofline is not None:
        console = terminal.results
        width = min(console.width, _MOST_WIDTH)
        drawn = roofline_view(roofline, width=width, height=_HEIGHT)
        console.print("", drawn, sep="\n", soft_wrap=True)
        terminal.show(reasons(roofline.points))
