"""JSON to stdout or to a file, the same for every mode."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpulab.headless.standard_streams import OutputError
from gpulab.protocol.files import check_writable, open_regular, write_whole
from gpulab.protocol.run_file import is_run_file
from gpulab.protocol.text import plain_json
from gpulab.session.settings import UsageError

_SURROGATES = re.compile("[\ud800-\udfff]")


def write_json(value: Any, target: str) -> None:
    """`target`: a file, or - for stdout. OutputError where it cannot be written."""
    data = plain_json(msgspec.json.format(_encoded(value))) + b"\n"
    if target == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.flush()
        return
    try:
        write_whole(Path(target), data)
    except OSError as error:
        raise OutputError(f"--json {target}: {error.strerror}") from None


def _encoded(value: Any) -> bytes:
    """The names of files may be no Unicode: what cannot be encoded is replaced, so that every reader takes the rest."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value)))


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list) else value


def check_json(target: Path | None, run_files: Sequence[Path]) -> None:
    """UsageError where the JSON cannot be written, or would destroy a run file."""
    if target is None:
        return
    try:
        check_writable(target)
        destroys = target in run_files or (target.is_file() and is_run_file(_start_of(target)))
    except OSError as error:
        raise UsageError(f"--json {target}: {error.strerror}") from None
    if destroys:
        raise UsageError(f"--json {target}: that is a run file, which is never overwritten")


def _start_of(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(64)


def check_run_file(path: Path) -> None:
    """UsageError where a run file is there already."""
    if os.path.lexists(path):  # a link that leads nowhere too
        raise UsageError(f"--output {path} exists: runs are never overwritten, choose another name")
