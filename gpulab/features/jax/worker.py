"""Steps of a scenario that uses JAX, recorded by its own profiler: torch's sees none of them on a
CPU.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from gzip import decompress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpulab.features.jax.reading import read, recordings_in
from gpulab.traces.trace import WINDOW, Trace


def recorded(run: Callable[[], None], file: Path | None) -> Trace | None:
    """Run it while JAX records, and keep the trace in `file`; None where JAX has not been imported,
    or its profiler saw no device, as beside another one on a GPU.
    """
    jax: Any = sys.modules.get("jax")
    if jax is None:
        return None
    how = {}
    if hasattr(jax.profiler, "ProfileOptions"):
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        how["profiler_options"] = options
    with TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, **how), jax.profiler.TraceAnnotation(WINDOW):
            run()
        written = recordings_in(Path(folder))[0].read_bytes()
    trace, _ = read(json.loads(decompress(written))["traceEvents"])
    if not trace.on_device:
        return None
    if file is not None:
        file.write_bytes(written)
    return trace


def write_memory(file: Path) -> None:
    """Write what is allocated on JAX's devices, by the lines that allocated it. OSError."""
    sys.modules["jax"].profiler.save_device_memory_profile(str(file))
