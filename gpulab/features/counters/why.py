"""Files of Nsight Compute, among those of other profilers."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from gpulab.features.counters import reading
from gpulab.features.counters.reading import ENDINGS, is_counters
from gpulab.traces.recording import Recording


def files_in(folder: Path) -> list[Path]:
    """Return those of a folder that ncu wrote."""
    there = (file for file in folder.iterdir() if file.name.endswith(ENDINGS))
    return [file for file in there if is_counters(file)]


def read(path: Path, _: TextIO) -> list[Recording] | None:
    """Return what was counted; None where the file is not ncu's. ValueError, OSError."""
    if not is_counters(path):
        return None
    return [Recording(path.name, None, counted=reading.read(path))]
