"""Timed blocks that have not been sent yet, in memory that the worker shares with its supervisor.

A worker that dies in the middle of a step takes no sample with it: the supervisor sends what is still here.
"""

from __future__ import annotations

import mmap
import struct
from typing import NamedTuple

from gpulab.protocol.events import Samples

_HEAD = struct.Struct("<QQ")
_ROW = struct.Struct("<IIIddIIdQd")
_COLUMNS = 10
_MOST_ROWS = 1 << 12


class Block(NamedTuple):
    """One sample. Seconds are per step; faults and switches are of the whole block."""

    time_s: float
    cpu_s: float
    faults: int
    switches: int
    ended: float
    """When it was over, on the monotonic clock that all processes share."""
    steps: int
    sm_mhz: float = 0.0
    """The clock of the SMs just before it, by the device clock's spin; 0 where there was none."""


class SampleBuffer:
    """Rows (epoch, round, variant, block) in the order they were measured; `names` are the variants by index."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names
        self._memory = mmap.mmap(-1, _HEAD.size + _MOST_ROWS * _ROW.size)

    def forked(self) -> None:
        """A child that the scenario forks has a buffer of its own."""
        self._memory = mmap.mmap(-1, len(self._memory))

    def __len__(self) -> int:
        return int(_HEAD.unpack_from(self._memory)[0])

    @property
    def full(self) -> bool:
        return len(self) == _MOST_ROWS

    def add(self, epoch: int, number: int, name: str, block: Block) -> None:
        """One block of round `number`."""
        count, complete = _HEAD.unpack_from(self._memory)
        values = (
            self.names.index(name),
            block.time_s,
            block.cpu_s,
            block.faults,
            block.switches,
            block.ended,
            block.steps,
            block.sm_mhz,
        )
        _ROW.pack_into(self._memory, _HEAD.size + count * _ROW.size, epoch, number, *values)
        _HEAD.pack_into(self._memory, 0, count + 1, complete)

    def complete(self, epochs: int) -> None:
        """All rounds of the first `epochs` epochs are in."""
        _HEAD.pack_into(self._memory, 0, len(self), epochs)

    def take(self) -> Samples:
        """Everything as one event; the buffer is empty afterwards."""
        count, complete = _HEAD.unpack_from(self._memory)
        rows = [_ROW.unpack_from(self._memory, _HEAD.size + index * _ROW.size) for index in range(count)]
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(_COLUMNS)]
        epoch, number, variant, times_s, cpu_s, faults, switches, ended, steps, sm_mhz = columns
        _HEAD.pack_into(self._memory, 0, 0, complete)
        return Samples(
            names=self.names,
            complete=complete,
            epoch=epoch,
            round=number,
            variant=variant,
            times_s=times_s,
            cpu_s=cpu_s,
            faults=faults,
            switches=switches,
            ended=ended,
            steps=steps,
            sm_mhz=sm_mhz if any(sm_mhz) else [],
        )
