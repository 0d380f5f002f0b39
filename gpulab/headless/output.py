"""JSON to stdout or to a file, the same for every mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from gpulab.run.request import UsageError


def write_json(value: Any, target: str) -> None:
    """`target`: a file, or - for stdout. UsageError where it cannot be written."""
    data = msgspec.json.format(msgspec.json.encode(value)) + b"\n"
    if target == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        Path(target).write_bytes(data)
    except OSError as error:
        raise UsageError(f"--json {target}: {error.strerror}") from None
