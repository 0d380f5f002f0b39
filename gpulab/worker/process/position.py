"""Where a worker is, in memory that it shares with its supervisor: readable after any death."""

from __future__ import annotations

import mmap
import os
import struct

from gpulab.protocol.statuses import Stage

_STAGES = tuple(Stage)
_NO_VARIANT = 255
_FLAGS = 3
_PID = struct.Struct("<q")


class WorkerPosition:
    """The stage and variant that a worker is at, and whether the session knows the ceilings of the device."""

    def __init__(self, variants: tuple[str, ...] = ()) -> None:
        self.names = variants
        """Of a job's variants; the same in every process."""
        self._cell = mmap.mmap(-1, _FLAGS + _PID.size)
        self.move(Stage.START)

    def adopt(self) -> None:
        """Make the calling process the one that is at work."""
        _PID.pack_into(self._cell, _FLAGS, os.getpid())

    @property
    def pid(self) -> int:
        """The process that is at work; 0 before there is any."""
        return int(_PID.unpack_from(self._cell, _FLAGS)[0])

    def move(self, stage: Stage, variant: str | None = None) -> None:
        self._cell[0] = _STAGES.index(stage)
        self._cell[1] = _NO_VARIANT if variant is None else self.names.index(variant)

    def forked(self) -> None:
        """A child that the scenario forks has a position of its own."""
        self._cell = mmap.mmap(-1, len(self._cell))

    @property
    def stage(self) -> Stage:
        return _STAGES[self._cell[0]]

    @property
    def variant(self) -> str | None:
        return None if self._cell[1] == _NO_VARIANT else self.names[self._cell[1]]

    @property
    def ceilings_known(self) -> bool:
        """Whether the session knows the ceilings of the device from an earlier run."""
        return bool(self._cell[2])

    def set_ceilings_known(self) -> None:
        self._cell[2] = 1
