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

from gpulab.core.replaced import Replaced
from gpulab.features.bill.events import ProcessBooked


class Bills:
    """Those of one run."""

    def __init__(self) -> None:
        self._files = Replaced(dict[str, Any])

    def read(self, path: Path) -> Iterator[ProcessBooked]:
        """Yield the bill of a process, where it is a newer one."""
        for bill in self._files.newer(path):
            rank = str(bill.get("rank"))
            bill |= {
                "type": ProcessBooked.__struct_config__.tag,
                "until": bill.get("t"),
                "rank": int(rank) if rank.isdigit() else 0,
                "ranked": rank.isdigit(),
                "is_root": bill.get("parent") == os.getpid(),
            }
            with suppress(msgspec.ValidationError):
                yield msgspec.convert(bill, ProcessBooked)
