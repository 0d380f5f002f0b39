"""What `--export` writes of a comparison of saved runs: a page, or Markdown."""

from __future__ import annotations

from gpulab.commit import version
from gpulab.features.compare.markdown import comparison_markdown
from gpulab.features.compare.report import ComparisonReport
from gpulab.features.compare.view import comparison_view
from gpulab.show import html
from gpulab.show.html import element
from gpulab.show.page import framed


def rendered(report: ComparisonReport, form: str) -> str:
    """In one of the forms, "html" or "md"."""
    if form == "md":
        return "\n".join(comparison_markdown(report)) + "\n"
    heading = f"{report.before} → {report.after}"
    header = [element("p", "gpulab · comparison", class_="dim"), element("h1", heading)]
    made_by = f"Compared and written by gpulab {version()}"
    sections = [("Result", [html.of(comparison_view(report, verbose=True))])]
    return framed(heading, header, sections, made_by)
