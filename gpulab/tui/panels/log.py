"""What a scenario printed, and what its failures left."""

from __future__ import annotations

from gpulab.draw.blocks import Block, Text
from gpulab.report.report import RunReport
from gpulab.report.sentences import sentence
from gpulab.tui.panels.tabs import Selection
from gpulab.tui.status import before_a_run, in_the_middle


def content(selection: Selection) -> Block:
    if selection.run is None:
        return in_the_middle(before_a_run(selection.row, selection.age), selection.size)
    return log(selection.run.report)


def log(report: RunReport) -> Text:
    """Every line that was kept, with the count of those that were not; the end of it while it still
    comes in.
    """
    head, tail = report.log.head, report.log.tail
    text = Text()
    if report.under_way:
        text.append("".join(f"{line[:200]}\n" for line in [*head, *tail][-200:]))
        return text or Text("nothing printed so far", "dim")
    text.append("".join(f"{line}\n" for line in head))
    if report.log.skipped:
        text.append(f"... {report.log.skipped:,} lines left out ...\n", "dim")
    text.append("".join(f"{line}\n" for line in tail))
    for failure in report.failures:
        cause = f"{failure.variant or 'the run'}: {failure.kind}, {sentence(failure.cause)}"
        text.append(f"{cause}\n", "red")
        text.append(failure.traceback, "dim")
    return text or Text("it printed nothing", "dim")
