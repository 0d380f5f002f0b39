"""The bills that samples in the processes of a program write, read as events: a file for each
process, which is written again and again.

The program could write there too, so each file is checked, and one that is no bill is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from gpulab.core.replaced import Replaced
from gpulab.core.values import Count, Line, Moment, Name, Seconds
from gpulab.features.bill.events import (
    MOST_ROWS,
    BookedTime,
    Compilation,
    InModules,
    KindOfStep,
    Look,
    ProcessBooked,
    ThreadTime,
)


class _Bill(msgspec.Struct, frozen=True, kw_only=True):
    """What the samples of a process come to so far: its file has nothing else."""

    pid: Count
    parent: Count
    role: Name
    rank: Name
    started: Moment
    begun: Moment
    t: Moment
    ended: bool
    samples: Count
    own_s: Seconds
    collected_s: Seconds
    collections: Count
    preempted_s: Seconds
    rows: Annotated[list[BookedTime], msgspec.Meta(max_length=MOST_ROWS)]
    other_s: Seconds
    compilations: Annotated[list[Compilation], msgspec.Meta(max_length=MOST_ROWS)]
    threads: Count
    cores: Count
    steps: Annotated[list[KindOfStep], msgspec.Meta(max_length=MOST_ROWS)]
    other_threads: Annotated[list[ThreadTime], msgspec.Meta(max_length=MOST_ROWS)]
    in_modules: InModules
    switches: Annotated[list[tuple[Name, Line, Count]], msgspec.Meta(max_length=MOST_ROWS)]
    faults: tuple[Count, Seconds, Seconds]
    place: Line = ""
    available: Count
    memory: Annotated[list[Look], msgspec.Meta(max_length=MOST_ROWS)]


class Bills:
    """Those of one run."""

    def __init__(self) -> None:
        self._files = Replaced(_Bill)

    def read(self, path: Path) -> Iterator[ProcessBooked]:
        """Yield the bill of a process, where it is a newer one."""
        for bill in self._files.newer(path):
            fields = {field: getattr(bill, field) for field in bill.__struct_fields__}
            del fields["t"]
            fields["rank"] = int(bill.rank) if bill.rank.isdigit() else 0
            yield ProcessBooked(
                until=bill.t,
                is_root=bill.parent == os.getpid(),
                ranked=bill.rank.isdigit(),
                **fields,
            )
