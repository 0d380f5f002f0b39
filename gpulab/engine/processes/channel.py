"""A worker's event pipe, and the memory that it shares with its supervisor: its position, and the
samples that it has not sent yet.

A full pipe blocks its writer. So writes never block while something is timed: what the pipe does
not take waits here and leaves between blocks. A worker that dies in the middle of a step loses no
sample: the supervisor sends those that are still in the shared memory.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import struct
import sys
from contextlib import suppress
from typing import Any

from gpulab.core.events import PIPE_LOST, Event, Samples
from gpulab.core.jobs import WorkerJob, subject_of
from gpulab.core.statuses import Stage
from gpulab.core.wire import numbered, of_supervisor
from gpulab.engine.step_clock import Block
from gpulab.proc.pipes import to_high_number
from gpulab.scenario import CONTROL

_COUNT = struct.Struct("<Q")
_ROOM = 1 << 20


class Channel:
    """Ordered, lossless, non-blocking: `emit` queues and writes what fits, `flush` waits until all
    is gone.
    """

    def __init__(self, fd: int) -> None:
        self._fd = to_high_number(fd)
        os.set_blocking(self._fd, False)
        # the user's pipe quota is spent: the default size works, with more waiting
        with suppress(OSError):
            fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, _ROOM)
        self._waiting = bytearray()
        self._sent = mmap.mmap(-1, _COUNT.size)
        self._of_worker = True
        self.most_waiting = 0
        """The most bytes that ever waited for the reader."""
        self.position = WorkerPosition()
        self.buffer = SampleBuffer()
        self.take_ownership()

    def take_ownership(self) -> None:
        """Make the calling process the one that writes; a fork of it closes the pipe."""
        self._pid = os.getpid()

    @property
    def sent(self) -> int:
        """Events so far, of all processes that share this."""
        return int(_COUNT.unpack_from(self._sent)[0])

    def become_supervisors(self) -> None:
        """Send as the supervisor from now on."""
        self._of_worker = False

    def take_turn(self) -> None:
        """Make the calling process the one that works, too."""
        self.position.take_ownership()
        self.take_ownership()

    def name_variants(self, job: WorkerJob) -> None:
        """Set the names of a job's variants, in each process that was forked before there was a
        job.
        """
        subject = subject_of(job)
        infos = subject.variants if subject else ()
        self.position.names = self.buffer.names = (*(info.name for info in infos), CONTROL)

    def forked(self) -> None:
        """A child that the scenario forks has memory of its own, and no pipe."""
        with suppress(OSError):
            os.close(self._fd)
        self._sent = mmap.mmap(-1, _COUNT.size)
        self.position.forked()
        self.buffer.forked()

    def emit(self, *events: Event) -> None:
        if os.getpid() != self._pid:
            os._exit(PIPE_LOST)  # a child forked by the scenario came back into the lab's own code
        for event in events:
            line = numbered(self.sent, event) if self._of_worker else of_supervisor(event)
            self._waiting += line
            _COUNT.pack_into(self._sent, 0, self.sent + 1)
        self.pump()
        self.most_waiting = max(self.most_waiting, len(self._waiting))
        if len(self._waiting) > 64 << 20:
            self.flush()

    def pump(self) -> None:
        """Write what the pipe takes now."""
        while self._waiting:
            try:
                with memoryview(self._waiting) as view:
                    written = os.write(self._fd, view[:_ROOM])
                del self._waiting[:written]
            except BlockingIOError:
                return
            except OSError as error:
                if not isinstance(error, BrokenPipeError):  # the session is gone
                    print("gpulab: the scenario closed the lab's event pipe", file=sys.stderr)
                os._exit(PIPE_LOST)

    def flush(self) -> None:
        """Write everything, waiting for the reader."""
        self.pump()
        while self._waiting:
            select.select([], [self._fd], [])
            self.pump()


_STAGES = tuple(Stage)
_NO_VARIANT = 255
_FLAGS = 3
_PID = struct.Struct("<q")


class WorkerPosition:
    """A worker's stage and variant, and whether the session knows the ceilings of the device."""

    def __init__(self, variants: tuple[str, ...] = ()) -> None:
        self.names = variants
        """Of a job's variants; the same in every process."""
        self._cell = mmap.mmap(-1, _FLAGS + _PID.size)
        self.move(Stage.START)

    def take_ownership(self) -> None:
        """Make the calling process the one that is working."""
        _PID.pack_into(self._cell, _FLAGS, os.getpid())

    @property
    def pid(self) -> int:
        """The process that is working; 0 before there is one."""
        return int(_PID.unpack_from(self._cell, _FLAGS)[0])

    def move(self, stage: Stage, variant: str | None = None) -> None:
        self._cell[0] = _STAGES.index(stage)
        self._cell[1] = _NO_VARIANT if variant is None else self.names.index(variant)

    def forked(self) -> None:
        self._cell = mmap.mmap(-1, len(self._cell))

    @property
    def stage(self) -> Stage:
        return _STAGES[self._cell[0]]

    @property
    def variant(self) -> str | None:
        return None if self._cell[1] == _NO_VARIANT else self.names[self._cell[1]]

    @property
    def ceilings_known(self) -> bool:
        """Return whether the session knows the ceilings of the device from an earlier run."""
        return bool(self._cell[2])

    def set_ceilings_known(self) -> None:
        self._cell[2] = 1


_HEAD = struct.Struct("<QQ")
_ROW = struct.Struct("<IIIddIIdQd")
_COLUMNS = ("epoch", "round", "variant", "times_s", "cpu_s", *Block._fields[2:])
_MOST_ROWS = 1 << 12


class SampleBuffer:
    """Rows (epoch, round, variant, block) in the order they were measured; `names` are the variants
    by index.
    """

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        self.names = names
        self._memory = mmap.mmap(-1, _HEAD.size + _MOST_ROWS * _ROW.size)

    def forked(self) -> None:
        self._memory = mmap.mmap(-1, len(self._memory))

    def __len__(self) -> int:
        return int(_HEAD.unpack_from(self._memory)[0])

    @property
    def full(self) -> bool:
        return len(self) == _MOST_ROWS

    def add(self, epoch: int, number: int, name: str, block: Block) -> None:
        count, complete = _HEAD.unpack_from(self._memory)
        place = _HEAD.size + count * _ROW.size
        _ROW.pack_into(self._memory, place, epoch, number, self.names.index(name), *block)
        _HEAD.pack_into(self._memory, 0, count + 1, complete)

    def complete(self, epochs: int) -> None:
        """All rounds of the first `epochs` epochs are in."""
        _HEAD.pack_into(self._memory, 0, len(self), epochs)

    def take(self) -> Samples:
        """Everything as one event; the buffer is empty afterwards."""
        count, complete = _HEAD.unpack_from(self._memory)
        rows = list(_ROW.iter_unpack(self._memory[_HEAD.size : _HEAD.size + count * _ROW.size]))
        columns: dict[str, Any] = {
            name: [row[place] for row in rows] for place, name in enumerate(_COLUMNS)
        }
        if not any(columns["sm_mhz"]):
            columns["sm_mhz"] = []
        _HEAD.pack_into(self._memory, 0, 0, complete)
        return Samples(names=self.names, complete=complete, **columns)
