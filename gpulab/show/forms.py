"""The forms that a run can be had in, by the endings of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from gpulab.report.report import RunReport
from gpulab.show.loaded_run import LoadedRun, load_run

if TYPE_CHECKING:
    from gpulab.features.compare.report import ComparisonReport

_MODULES: Mapping[str, str] = {
    "html": "page:page",
    "md": "markdown:document",
    "text": "display:whole",
}
_COMMENTS = {"md": "\n[//]: # (gpulab)\n"}
"""At the end, where nobody sees it: no HTML in Markdown, which some readers show."""
MARKS = {
    ".html": b'<meta name="generator" content="gpulab ',
    ".md": _COMMENTS["md"].encode(),
}
"""By the endings of files that are written: what only such a file holds."""


def rendered_comparison(report: ComparisonReport, form: str) -> str:
    """As a page, or in Markdown."""
    # a page brings what colours code, which takes a while
    from gpulab.show import markdown, page

    text = markdown.comparison(report) if form == "md" else page.comparison_page(report)
    return text + _COMMENTS.get(form, "")


def rendered(report: RunReport, form: str) -> str:
    """ValueError where there is no such form."""
    if form not in _MODULES:
        raise ValueError(f"{form!r}: write one of {', '.join(_MODULES)}")
    module, _, name = _MODULES[form].partition(":")
    render: Callable[[LoadedRun], str] = getattr(import_module(f"gpulab.show.{module}"), name)
    return render(load_run(report)) + _COMMENTS.get(form, "")
