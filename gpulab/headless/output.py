"""JSON to stdout or to a file, the same for every mode."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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


def check_json(target: Path, paths: Sequence[Path]) -> None:
    """UsageError where the JSON cannot be written, or would destroy a run file."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab+") as file:
            file.seek(0)
            is_run = target in paths or file.read(64).startswith(b'{"format":"gpulab.run"')
    except OSError as error:
        raise UsageError(f"--json {target}: {error.strerror}") from None
    if is_run:
        raise UsageError(f"--json {target}: that is a run file, which is never overwritten")
