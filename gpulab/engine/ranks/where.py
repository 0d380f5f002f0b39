"""Where a rank is: the last collective of torch's flight recorder, and the line that runs; and
which rank the others wait for.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

RECORDED = 256
"""Collectives that torch keeps (TORCH_FR_BUFFER_SIZE)."""


class Collective(msgspec.Struct, frozen=True, kw_only=True):
    """The last one that a rank has called: how many it has called by then, its name and the sizes
    of its tensors.
    """

    number: int = 0
    name: str = ""
    sizes: list[list[int]] = []

    def __str__(self) -> str:
        sizes = " and ".join("x".join(map(str, size)) for size in self.sizes[:2])
        return f"{self.name} {self.number}" + (f" of {sizes}" if sizes else "")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The place where a rank is: the last collective that it called, and the line of the scenario's
    file that runs.
    """

    last: Collective = Collective()
    line: str = ""


def place(path: str, *, idle: bool = False) -> Place:
    """Return the place of the main thread of this process, which is in no step where it is `idle`;
    `path` is the scenario's file.
    """
    return Place(last=last_collective(), line="the end of its step" if idle else _line(path))


def last_collective() -> Collective:
    """The one that this process called last; of NCCL, whose calls return at once, the first that
    the device has not ended. None where torch has recorded nothing.
    """
    of_nccl = _recorded("_dump_nccl_trace_json")
    entries = [*_recorded("_dump_fr_trace_json"), *of_nccl]
    if not entries:
        return Collective()
    last = max(entries, key=lambda entry: entry["time_created_ns"])
    if last in of_nccl:
        unfinished = [entry for entry in of_nccl if entry["state"] != "completed"]
        last = min(unfinished, key=lambda entry: entry["record_id"], default=last)
    return Collective(
        number=last["record_id"] + 1,
        name=last["profiling_name"].rpartition(":")[2],
        sizes=last["input_sizes"],
    )


def _recorded(dump: str) -> list[dict[str, Any]]:
    """NCCL has a recorder of its own."""
    with suppress(Exception):  # a private call of torch, for a message alone
        from torch._C import _distributed_c10d

        read: Any = json.loads(getattr(_distributed_c10d, dump)(True, False))
        return read.get("entries") or []
    return []


def _line(path: str) -> str:
    """The innermost line of the scenario's file; of any file where it has none."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    innermost = frame
    while frame is not None:
        if frame.f_code.co_filename == path:
            return f"line {frame.f_lineno}, in {frame.f_code.co_name}"
        frame = frame.f_back
    if innermost is None:
        return ""
    if innermost.f_code.co_name == "synchronize":
        return "the wait for its device"
    return f"{innermost.f_code.co_filename}:{innermost.f_lineno}"


def missing(places: Mapping[int, Place], waited_s: float) -> str:
    """Name the rank that did not come to a collective, called another one, or with other sizes."""
    most = max(place.last.number for place in places.values())
    late = {rank: place for rank, place in places.items() if place.last.number < most}
    there = {rank: place for rank, place in places.items() if place.last.number == most}
    waiting = next(iter(there.values())).last
    if most and late:
        rank, at = min(late.items(), key=lambda item: item[1].last.number)
        called = f"the last it called is {at.last}" if at.last.number else "it has called none"
        return (
            f"rank {rank} did not come to {waiting} in {waited_s:g} s: {called}; it is at {at.line}"
        )
    kinds: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for rank, each in there.items():
        kinds[each.last.name, str(each.last)].append(rank)
    if most and len(kinds) > 1:
        few = min(kinds.items(), key=lambda item: (len(item[1]), 0 in item[1]))
        many = next(item for item in kinds.items() if item is not few and item[0] != few[0])
        return (
            f"rank {few[1][0]} called {few[0][1]}, and rank {many[1][0]} {many[0][1]}: ranks call "
            f"the same collectives in the same order ({places[few[1][0]].line})"
        )
    lines = "; ".join(f"rank {rank} at {place.line}" for rank, place in places.items())
    return f"no rank went on for {waited_s:g} s: {lines}"
