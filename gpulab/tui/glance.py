"""Before the screen over a run is there, which takes its second: a line that says how the run
stands. It is imported before the command line, whose imports take as long again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpulab.core.files import is_held, open_regular
from gpulab.core.text import cut, one_line, plain

_START_BYTES, _END_BYTES = 1 << 18, 1 << 20
_MOST = 10
"""Of the newest files of a folder."""
_NICE = 10
"""A watcher's priority below that of a run."""
_STAGE, _PROCESS = b'{"type":"StageStarted"', b'{"type":"ProcessStarted"'


def begin(arguments: Sequence[str]) -> None:
    """Print that line where these are all that `--watch` was given, on a terminal; and give way:
    the run that is watched may be on this machine.
    """
    is_plain = len(arguments) <= 1 and not any(word.startswith("-") for word in arguments)
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):  # the screen says it then
        if is_plain and sys.stdout.isatty() and (line := glance("".join(arguments))):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    with suppress(AttributeError, OSError):
        os.nice(_NICE)


def glance(name: str) -> str:
    """Return a line about the run that is named, or of the newest that goes on in a folder; empty
    where there is none.
    """
    path = Path(name or _own_runs())
    if not path.is_dir():
        return _line(path)
    files = [entry for entry in os.scandir(path) if entry.name.endswith(".jsonl")]
    files.sort(key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in files[:_MOST]:
        with open_regular(path / entry.name) as file:
            if is_held(file.fileno()):
                return _line(path / entry.name)
    return ""


def _own_runs() -> Path:
    from gpulab.session.run_files import runs_folder

    return runs_folder()


def _line(path: Path) -> str:
    """The scenario, its host, and the last stage with its process and time."""
    with open_regular(path) as file:
        _, first = (file.readline(_START_BYTES) for _ in range(2))
        started = json.loads(first)
        file.seek(max(file.tell(), file.seek(0, os.SEEK_END) - _END_BYTES))
        *lines, _ = file.read().split(b"\n")
    stage = _last(lines, _STAGE)
    process = _last(lines, _PROCESS)
    elapsed_s = json.loads(lines[-1])["t"] - started["t"] if lines else 0.0
    parts = [f"{started['request']['job']['subject']['scenario']} on {started['host']}"]
    parts.append(f"{stage.get('stage', 'started')} {stage.get('variant') or ''}".strip())
    if process and stage.get("stage") == "measure":
        parts.append(f"process {process['process'] + 1}")
    parts += [f"{elapsed_s:.0f} s", "opening the screen"]
    return cut(one_line(plain(", ".join(parts))), 300)


def _last(lines: list[bytes], start: bytes) -> dict[str, Any]:
    """The last event whose line starts so."""
    line = next((line for line in reversed(lines) if line.startswith(start)), b"{}")
    found: dict[str, Any] = json.loads(line)
    return found
