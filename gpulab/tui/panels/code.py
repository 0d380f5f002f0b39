"""The code of a scenario's variants, what differs between them, and what each then runs."""

from __future__ import annotations

from collections.abc import Mapping

from gpulab.catalog.kernels import kernels_of, shipped_kernels
from gpulab.draw.blocks import Block, Text
from gpulab.features import needed, present
from gpulab.report.report import RunReport
from gpulab.tui.panels.tabs import Selection


def content(selection: Selection) -> Block:
    row, source = selection.row, selection.source
    if selection.saved and not source:
        return Text("The run file does not have the source text.", "dim")
    texts = kernels_of(source, row.variants, row.params)
    report = selection.run.report if selection.run else None
    has_kernels = bool(texts) or "triton" in source
    compiled = _compiled(report, source if has_kernels else "", row.against)
    drawn: Block = needed("code.view").code_view(source, row.variants, report, texts, compiled)
    return drawn


def _compiled(report: RunReport | None, source: str, against: Mapping[str, str]) -> Block | None:
    """Return what the compiler made of the kernels: by the run, or as kept of this source."""
    view = present("kernels.view")
    if view is None:
        return None
    made: Block | None = view.kernels(report) if report else None
    if made is None and source:
        made = view.kernel_page(shipped_kernels(source), against)
    return made
