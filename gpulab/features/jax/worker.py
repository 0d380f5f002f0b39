"""What JAX itself says of the steps of a scenario: torch's profiler sees none of XLA's operations
on a CPU, and none of its memory.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpulab.core.findings import Finding
from gpulab.features.jax.findings import jax_memory
from gpulab.features.jax.reading import read, recordings_in
from gpulab.traces.trace import WINDOW, Trace


@contextmanager
def recorded(found: list[Trace], file: str | None) -> Iterator[None]:
    """Let JAX, which has been imported, record what runs meanwhile. Where its profiler sees a
    device the recording is found, and kept in `file`.
    """
    jax: Any = sys.modules["jax"]
    with TemporaryDirectory() as folder:
        with jax.profiler.trace(folder), jax.profiler.TraceAnnotation(WINDOW):
            yield
        written = decompress(recordings_in(Path(folder))[0].read_bytes())
    trace, _ = read(json.loads(written)["traceEvents"])
    if trace.on_device:
        found.append(trace)
        if file is not None:
            Path(file).write_bytes(written)


def memory_held(variant: str, path: str) -> Finding:
    """Write what JAX's devices hold, by lines of Python, to a file of that path without its
    ending. OSError.
    """
    jax: Any = sys.modules["jax"]
    file = f"{path}-{variant}.pprof"
    jax.profiler.save_device_memory_profile(file)
    total = sum(array.nbytes for array in jax.live_arrays())
    return jax_memory(variant, total=total, file=file)
