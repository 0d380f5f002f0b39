"""The code of a scenario's variants, what differs between them, and what each then runs."""

from __future__ import annotations

from collections.abc import Hashable

from rich.console import RenderableType
from rich.text import Text

from gpulab.catalog.kernels import kernels_of, shipped_kernels
from gpulab.features.code.view import FAILED_HERE, code_view
from gpulab.features.kernels.view import kernel_page, kernels
from gpulab.session.run import Run
from gpulab.tui.panels.tabs import Selection


def content(selection: Selection) -> RenderableType:
    row, source = selection.row, selection.source
    if selection.saved and not source:
        return Text("The run file does not have the source text.", "dim")
    texts = kernels_of(source, row.variants, row.params)
    report = compiled = None
    if selection.run:
        report = selection.run.report
        compiled = kernels(report)
    if compiled is None and (texts or "triton" in source):
        compiled = kernel_page(shipped_kernels(source), row.against)
    return code_view(source, row.variants, report, selection.layout.size[0], texts, compiled)


def first_in_sight(selection: Selection) -> str:
    """The line that failed."""
    return FAILED_HERE if selection.run and selection.run.state.failures else ""


def changing(run: Run) -> Hashable:
    """Times beside the names: once a second."""
    return run.source.path, run.ended, int(run.state.t), len(run.state.failures)
