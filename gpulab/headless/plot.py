"""`--plot`: each run as a picture in a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import chdir
from importlib import util
from pathlib import Path

from gpulab.core.files import write_whole
from gpulab.headless.output import Terminal
from gpulab.headless.standard_streams import OutputError
from gpulab.report.report import RunReport
from gpulab.show.display import image


def plot(pictures: Iterable[tuple[Sequence[RunReport], Path]], terminal: Terminal) -> None:
    """Write each picture, of one run or a sweep: after everything else, since it is what may fail.
    OutputError where one did.
    """
    problems = []
    for reports, target in pictures:
        try:
            write_whole(target, _image(reports, target.suffix.lower().lstrip(".")))
        # of whatever kind: the results are there, and the command goes on
        except Exception as error:
            reason = (
                error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            )
            problems.append(f"--plot {target}: the picture could not be made: {reason}")
        else:
            terminal.note(f"picture: {target}")
    if problems:
        raise OutputError("; ".join(problems))


def _image(reports: Sequence[RunReport], kind: str) -> bytes:
    if kind == "svg":
        return image(reports, kind)
    # matplotlib reads its settings when it is imported: those of the folder one stands in before
    # all others. In its own folder they are its defaults, and no file of a stranger can break a
    # picture or run TeX.
    spec = util.find_spec("matplotlib")
    assert spec is not None  # check_output has looked
    assert spec.origin is not None
    with chdir(Path(spec.origin).parent / "mpl-data"):
        return image(reports, kind)
