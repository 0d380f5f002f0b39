"""The bills that samples in the processes of a program write, read as events: a file for each
process, which is written again and again.

The program could write there too, so each file is checked, and one that is no bill is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from gpulab.core.files import read_regular
from gpulab.core.limits import LINE_BYTES
from gpulab.features.bill.events import ProcessBooked


class Bills:
    """Those of one run."""

    def __init__(self) -> None:
        self._written: dict[Path, int] = {}
        """When each was written that was read last."""

    def read(self, path: Path) -> Iterator[ProcessBooked]:
        """Yield the bill of a process, where it is a newer one."""
        with suppress(OSError, msgspec.DecodeError, UnicodeError, RecursionError, KeyError):
            written = path.stat().st_mtime_ns
            if written == self._written.get(path):
                return
            bill = msgspec.json.decode(read_regular(path, LINE_BYTES), type=dict[str, Any])
            self._written[path] = written
            rank = str(bill["rank"])
            bill |= {
                "type": ProcessBooked.__struct_config__.tag,
                "until": bill.pop("t"),
                "rank": int(rank) if rank.isdigit() else 0,
                "ranked": rank.isdigit(),
                "is_root": bill["parent"] == os.getpid(),
            }
            yield msgspec.convert(bill, ProcessBooked)
