"""`--plot`: a run for slides, as a picture."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path

from gpulab.report.report import RunReport
from gpulab.session.settings import UsageError

KINDS = (".png", ".svg", ".pdf")


def check_plot(target: Path) -> None:
    """UsageError where the picture could not be made: found before anything is measured."""
    if target.suffix.lower() not in KINDS:
        raise UsageError(f"--plot {target}: the name ends in {', '.join(KINDS)}")
    if util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'gpulab[plot]'")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--plot {target}: {error.strerror}") from None
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise UsageError(f"--plot {target}: it cannot be written")


def plot(report: RunReport, target: Path) -> None:
    """Write the picture of one run."""
    from gpulab.views.picture import picture

    picture(report).savefig(target)
