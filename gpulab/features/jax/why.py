"""Traces of JAX, among those of other profilers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TextIO

from gpulab.features.jax import reading
from gpulab.traces.recording import Recording
from gpulab.traces.stream import raw_events, whole

ENDINGS = (".trace.json.gz",)
_HEAD_LENGTH = 1 << 16
_PROCESS = re.compile(rb'"name"\s*:\s*"/(device|host):')
"""The names of the processes, which come first, are those of devices of XLA."""


def files_in(folder: Path) -> list[Path]:
    """Return the newest traces in a folder that jax.profiler wrote to, one of each host."""
    return reading.recordings_in(folder)


def read(path: Path, text: TextIO) -> list[Recording] | None:
    """Return its timeline; None where it is no trace of JAX, and the text at its start.
    ValueError.
    """
    if path.name.endswith(".xplane.pb"):
        raise ValueError("what is read is JAX's *.trace.json.gz beside it")
    begin = text.buffer.read(_HEAD_LENGTH)
    text.buffer.seek(0)
    if not _PROCESS.search(begin):
        return None
    events, problem = whole(raw_events(text))
    trace, note = reading.read(events)
    return [Recording(path.name, trace, problem or note)]
