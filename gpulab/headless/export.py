"""`--export`: each run as a page, a report in Markdown, a picture of the screen, or a cast."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gpulab.core.files import check_writable, write_whole
from gpulab.features.export.forms import ENDINGS, rendered
from gpulab.headless.output import Terminal
from gpulab.headless.standard_streams import OutputError
from gpulab.report.report import RunReport
from gpulab.session.settings import UsageError


def check_export(target: Path) -> None:
    """UsageError where it could not be written: found before anything is measured."""
    if target.suffix not in ENDINGS:
        raise UsageError(f"--export {target}: the name ends in {', '.join(ENDINGS)}")
    try:
        check_writable(target)
    except OSError as error:
        raise UsageError(f"--export {target}: {error.strerror}") from None


def export(pages: Iterable[tuple[RunReport, Path]], terminal: Terminal) -> None:
    """Write each run, in the form that the ending of the name says. OutputError where one could
    not be.
    """
    problems = []
    for report, target in pages:
        try:
            text = rendered(report, target.suffix.lstrip("."))
            write_whole(target, text.encode(errors="replace"))
        # of whatever kind: the results are there, and the command goes on
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.strerror:
                reason = error.strerror
            problems.append(f"--export {target}: {reason}")
        else:
            terminal.note(f"exported: {target}")
    if problems:
        raise OutputError("; ".join(problems))
