"""`--plot`: each run as a picture in a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import chdir
from functools import partial
from importlib import util
from pathlib import Path

from gpulab.headless.export import export
from gpulab.headless.output import Terminal
from gpulab.report.report import RunReport
from gpulab.show.display import image


def plot(pictures: Iterable[tuple[Sequence[RunReport], Path]], terminal: Terminal) -> None:
    """Write each picture, of one run or a sweep. OutputError where one could not be."""
    files = [(partial(_image, reports), target) for reports, target in pictures]
    failed = "--plot {}: the picture could not be made"
    export(files, terminal, failed=failed, said="picture")


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
