"""`--export`: each run, or a comparison, as a page or as a report in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gpulab.core.files import write_whole
from gpulab.headless.output import Terminal
from gpulab.headless.standard_streams import OutputError


def export(pages: Iterable[tuple[Callable[[str], str], Path]], terminal: Terminal) -> None:
    """Write what each function renders in the form that the ending of the name says. OutputError
    where one could not be.
    """
    problems = []
    for render, target in pages:
        try:
            text = render(target.suffix.lower().lstrip("."))
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
