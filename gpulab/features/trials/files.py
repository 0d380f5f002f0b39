"""What was tried in the processes of a program, read as events: a file for each process, which is
replaced after each pair of windows.

The program could write there too, so each file is checked, and one that says something else is
passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec

from gpulab.core.files import read_regular
from gpulab.core.limits import LINE_BYTES
from gpulab.core.values import Count
from gpulab.features.trials.events import MOST_CHANGES, TrialsMeasured, TriedChange


class _File(msgspec.Struct, frozen=True):
    pid: Count
    changes: Annotated[list[TriedChange], msgspec.Meta(max_length=MOST_CHANGES)]


class Trials:
    """Those of one run."""

    def __init__(self) -> None:
        self._written: dict[Path, int] = {}
        """When each was written that was read last."""

    def read(self, path: Path) -> Iterator[TrialsMeasured]:
        """Yield what was tried in a process, where that is new."""
        with suppress(OSError, msgspec.DecodeError, UnicodeError, RecursionError):
            written = path.stat().st_mtime_ns
            if written == self._written.get(path):
                return
            file = msgspec.json.decode(read_regular(path, LINE_BYTES), type=_File)
            self._written[path] = written
            yield TrialsMeasured(pid=file.pid, changes=file.changes)
