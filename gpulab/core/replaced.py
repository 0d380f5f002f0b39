"""Files that a followed process replaces again and again, each one object of a kind.

The program could write there too, so each is checked, and one that says something else is passed
over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from gpulab.core.files import read_regular
from gpulab.core.limits import LINE_BYTES

T = TypeVar("T")


class Replaced(Generic[T]):
    """Those of one run."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._written: dict[Path, int] = {}
        """When each was written that was read last."""

    def newer(self, path: Path) -> Iterator[T]:
        """Yield what a file says, where it was replaced."""
        with suppress(OSError, msgspec.DecodeError, UnicodeError, RecursionError):
            written = path.stat().st_mtime_ns
            if written == self._written.get(path):
                return
            said = msgspec.json.decode(read_regular(path, LINE_BYTES), type=self._kind)
            self._written[path] = written
            yield said
