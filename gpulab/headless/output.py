"""JSON to stdout or to a file, the same for every mode."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpulab.protocol.run_file import is_run_file
from gpulab.session.settings import UsageError


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


def check_json(target: Path | None, run_files: Sequence[Path]) -> None:
    """UsageError where the JSON cannot be written, or would destroy a run file."""
    if target is None:
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab+") as file:
            file.seek(0)
            destroys = target in run_files or is_run_file(file.read(64))
    except OSError as error:
        raise UsageError(f"--json {target}: {error.strerror}") from None
    if destroys:
        raise UsageError(f"--json {target}: that is a run file, which is never overwritten")


def check_run_file(path: Path) -> None:
    """UsageError where a run file is there already."""
    if path.exists():
        raise UsageError(f"--output {path} exists: runs are never overwritten, choose another name")
