"""`--export`: each run, or a comparison, as a page or as a report in Markdown; `--plot`: as a
picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from gpulab.core.files import PICTURES, write_whole
from gpulab.headless.output import Terminal
from gpulab.headless.standard_streams import OutputError


def export(files: Iterable[tuple[Callable[[str], str | bytes], Path]], terminal: Terminal) -> None:
    """Write what each function renders in the form that the ending of the name says: after
    everything else, since it is what may fail. OutputError where one did.
    """
    problems = []
    for render, target in files:
        form = target.suffix.lower()
        is_picture = form in PICTURES
        try:
            made = render(form.lstrip("."))
            write_whole(target, made if isinstance(made, bytes) else made.encode(errors="replace"))
        # of whatever kind: the results are there, and the command goes on
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, OSError) and error.strerror:
                reason = error.strerror
            problems.append(f"{'--plot' if is_picture else '--export'} {target}: {reason}")
        else:
            terminal.note(f"{'picture' if is_picture else 'exported'}: {target}")
    if problems:
        raise OutputError("; ".join(problems))
