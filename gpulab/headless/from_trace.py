"""`--from-trace`: a scenario of the heaviest operations of a torch trace, with their shapes, ready
for a variant.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import shlex
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from gpulab.core.files import open_regular
from gpulab.core.limits import TRACE_BYTES
from gpulab.core.text import one_line
from gpulab.features.from_trace.calls import RecordedCalls, recorded_calls
from gpulab.features.from_trace.text import NoneIsolableError, operation_file
from gpulab.headless.new import write_scenario
from gpulab.headless.output import open_terminal
from gpulab.options import Options, UsageError
from gpulab.traces.stream import trace_events
from gpulab.traces.trace import read_any

_LENGTH_BYTES = 4
"""At the end of a gzip archive: how long it is unpacked."""


def from_trace(files: Sequence[str], options: Options) -> int:
    """Write the file and say what to do next. UsageError where it cannot be read, or made, or
    written.
    """
    trace = Path(files[0])
    name = re.sub(r"(\.pt)?(\.trace)?\.json(\.gz)?$", "", trace.name)
    stem = re.sub(r"\W+", "_", name).strip("_") or "trace"
    path = Path(files[1] if len(files) > 1 else f"{stem}_operations.py")
    recorded = _recorded(trace)
    try:
        title = one_line(trace.name).replace('"', "'").replace("\\", "/")
        text, written, named = operation_file(title, recorded, options.top or 10)
    except NoneIsolableError as error:
        raise UsageError(
            f"--from-trace {trace}: none of its heaviest operations can be called alone: {error}"
        ) from None
    except ImportError as error:
        raise UsageError(
            f"--from-trace {trace}: torch knows the arguments of its operations, and cannot be "
            f"imported ({error}): pip install torch"
        ) from None
    write_scenario("--from-trace", path, text)
    others = f", and why {named} are not in it" if named else ""
    shown = shlex.quote(str(path))
    terminal = open_terminal(ascii_only=options.ascii)
    terminal.say(f"wrote {path}: {written} operations{others}; time them: gpulab --run {shown}")
    return 0


@contextmanager
def opened(flag: str, path: Path) -> Iterator[TextIO]:
    """The text of a trace. UsageError where the file, or what is read of it, is no such."""
    try:
        with open_regular(path) as file, _unpacked(file) as text:
            yield text
    except UnicodeDecodeError:
        raise UsageError(
            f"{flag} {path}: no text: torch.profiler writes JSON (.json, .json.gz)"
        ) from None
    except RecursionError:
        raise UsageError(f"{flag} {path}: no trace: it is nested too deeply") from None
    except ValueError as error:
        raise UsageError(f"{flag} {path}: {one_line(str(error))}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"{flag} {path}: {getattr(error, 'strerror', None) or error}") from None


def _recorded(path: Path) -> RecordedCalls:
    with opened("--from-trace", path) as text:
        recorded = recorded_calls(read_any(trace_events(text)))
    if not recorded.calls:
        raise UsageError(
            f"--from-trace {path}: kernels, and no operations of the host: record with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] and record_shapes=True"
        )
    if not any(call.inputs for call in recorded.calls):
        raise UsageError(
            f"--from-trace {path}: no shapes in it: record with profile(record_shapes=True); "
            f"where its time goes: gpulab --why {path}"
        )
    return recorded


def _unpacked(file: BinaryIO) -> io.TextIOWrapper:
    """The text of the file, unpacked where it is a gzip archive. OSError where it is too large."""
    size = os.fstat(file.fileno()).st_size
    problem = f"larger than {TRACE_BYTES} bytes"
    packed = file.read(2) == b"\x1f\x8b"
    if packed and size > _LENGTH_BYTES:
        file.seek(-_LENGTH_BYTES, os.SEEK_END)
        size = int.from_bytes(file.read(), "little")
        problem += " unpacked, or cut short"
    if size > TRACE_BYTES:
        raise OSError(errno.EFBIG, problem)
    file.seek(0)
    unpacked = gzip.GzipFile(fileobj=file) if packed else file
    return io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="")
