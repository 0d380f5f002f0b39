"""`--export`: each run, or a comparison, as a page or as a report in Markdown; `--plot` writes its
pictures in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gpulab.core.files import write_whole
from gpulab.headless.output import Terminal
from gpulab.headless.standard_streams import OutputError


def export(
    files: Iterable[tuple[Callable[[str], str | bytes], Path]],
    terminal: Terminal,
    *,
    failed: str = "--export {}",
    said: str = "exported",
) -> None:
    """Write what each function renders in the form that the ending of the name says: after
    everything else, since it is what may fail. OutputError where one did.
    """
    problems = []
    for render, target in files:
        try:
            made = render(target.suffix.lower().lstrip("."))
            write_whole(target, made if isinstance(made, bytes) else made.encode(errors="replace"))
        # of whatever kind: the results are there, and the command goes on
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.strerror:
                reason = error.strerror
            problems.append(f"{failed.format(target)}: {reason}")
        else:
            terminal.note(f"{said}: {target}")
    if problems:
        raise OutputError("; ".join(problems))
