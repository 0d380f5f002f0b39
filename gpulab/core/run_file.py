"""The run file: append-only JSON lines, a header with the version first, then every event as it
came.

What was written survives any death of the writer. A line without its newline was cut off and is
dropped; an unknown type is skipped and counted; another version is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from gpulab.core.events import Event, RunStarted
from gpulab.core.failures import garbled_lines, several_runs, unknown_events
from gpulab.core.files import MODE, PACKED, hold, open_regular
from gpulab.core.findings import Finding
from gpulab.core.limits import (
    RUN_FILE_BYTES,
    RUN_FILE_LINE_BYTES,
    WHOLE_RUN_FILE_BYTES,
)
from gpulab.core.text import plain
from gpulab.core.wire import UNREADABLE, decode, encode

FORMAT = "gpulab.run"
VERSION = 2
_BATCH_BYTES = 16 << 20
LONGEST = RUN_FILE_LINE_BYTES + 2
"""Bytes of a line with its newline, and one more: what is longer is no event."""


class RunFileError(ValueError):
    """The file is no run file, or one of another gpulab."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))  # it names the file, whose name may hold anything


class Header(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    version: int
    gpulab: str


def is_run_file(start: bytes) -> bool:
    return start.startswith(b'{"format":"' + FORMAT.encode() + b'"')


class RunFile:
    """Writes one run as it goes: whole lines, straight to the kernel. FileExistsError: runs are
    never overwritten. It is locked for as long as its process lives, however that dies.
    """

    def __init__(self, path: Path, gpulab: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, MODE
        )
        # before the header: whoever reads that may ask for the lock
        hold(self._fd)
        try:
            self._write(encode(Header(format=FORMAT, version=VERSION, gpulab=gpulab)))
        except OSError:  # a disk that is full: nobody is left with an empty file
            os.close(self._fd)
            path.unlink()
            raise

    def append(self, events: Sequence[Event]) -> None:
        """OSError where the disk is full: the caller says so and goes on without."""
        self._write(b"".join(map(encode, events)))

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


class Lines:
    """Makes events of the lines of a run file as they come, and keeps count of what are none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0
        self.garbled: list[int] = []
        """The numbers, from 1, of lines that are no events."""
        self.unknown = 0
        """Events of unknown types."""
        self.cut = False
        """Whether an unterminated last line was dropped."""
        self._runs = 0

    def take(self, line: bytes) -> Event | None:
        """The event of one whole line. RunFileError where the first is no header of this
        version.
        """
        self.count += 1
        if self.count == 1:
            _check_header(self._path, line)
            return None
        try:
            event = decode(line)
        except ValueError:
            self.garbled.append(self.count)
            return None
        if event is None:
            self.unknown += 1
        self._runs += isinstance(event, RunStarted)
        return event

    @property
    def findings(self) -> list[Finding]:
        """Return findings of what could not be read, or makes no sense."""
        problems = []
        if self.garbled:
            problems.append(garbled_lines(lines=[str(number) for number in self.garbled]))
        if self.unknown:
            problems.append(unknown_events(count=self.unknown))
        if self._runs > 1:
            problems.append(several_runs(count=self._runs))
        return problems


@dataclass(frozen=True)
class SavedEvents:
    """The content of a run file: its events, and the lines that could not be read."""

    events: list[Event]
    garbled: list[int]
    unknown: int
    cut: bool
    findings: list[Finding]


def read_run_file(path: Path) -> SavedEvents:
    """Read a run file, whole or cut. RunFileError where it is none, where it has another version,
    or is too large to be kept as a whole.
    """
    lines = Lines(path)
    events: list[Event] = []
    for batch in event_batches(path, lines, WHOLE_RUN_FILE_BYTES):
        events += batch
    return SavedEvents(events, lines.garbled, lines.unknown, lines.cut, lines.findings)


def event_batches(
    path: Path, lines: Lines, most_bytes: int = RUN_FILE_BYTES
) -> Iterator[list[Event]]:
    """All events of a run file, at least one list of them. RunFileError as of `read_run_file`, at
    the latest with the last.
    """
    batch: list[Event] = []
    end = _BATCH_BYTES
    with _opened(path) as file:
        for read, line in _lines(file, path, most_bytes):
            lines.cut = not line.endswith(b"\n") and len(line) < LONGEST
            if lines.cut:
                break
            if (event := lines.take(line)) is not None:
                batch.append(event)
            if read >= end:
                yield batch
                batch = []
                end = read + _BATCH_BYTES
    if not lines.count:
        raise RunFileError(f"{path} has no complete line: the run ended before it began")
    yield batch


_TYPE = b'{"type":"'


def lines_of(path: Path, types: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """(type, line) of the events of some types, undecoded: for whoever needs little of many files.

    An unterminated last line is dropped. RunFileError as of `read_run_file`.
    """
    names = {name.encode(): name for name in types}
    begin = len(_TYPE)
    has_header = False
    with _opened(path) as file:
        for _, line in _lines(file, path, RUN_FILE_BYTES):
            if not has_header and line.endswith(b"\n"):
                _check_header(path, line)
                has_header = True
                continue
            name = names.get(line[begin : line.find(b'"', begin)])
            if name is not None and line.startswith(_TYPE) and line.endswith(b"\n"):
                yield name, line
    if not has_header:
        raise RunFileError(f"{path} has no complete line: the run ended before it began")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with open_regular(path) as file:
        if path.suffix != PACKED:
            yield file
            return
        import lzma  # few Pythons are built without it

        try:
            with lzma.open(file) as unpacked:
                yield unpacked
        except (lzma.LZMAError, EOFError) as error:
            raise RunFileError(f"{path} is damaged: {error}") from None


def _lines(file: IO[bytes], path: Path, most_bytes: int) -> Iterator[tuple[int, bytes]]:
    """(bytes up to its end, line with its newline); of a line that is too long the beginning, which
    is no event. RunFileError beyond `most_bytes`.
    """
    read = 0
    begins = True
    while line := file.readline(LONGEST):
        read += len(line)
        if read > most_bytes:
            size = f"{most_bytes >> 20} MiB"
            raise RunFileError(f"{path} holds more than {size}: gpulab reads no more of a run")
        if begins:
            yield read, line
        begins = line.endswith(b"\n")


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = msgspec.json.decode(line, type=Header)
    except UNREADABLE:
        header = Header(format="", version=0, gpulab="")
    if header.format != FORMAT:
        raise RunFileError(f"{path} is not a run file: its first line is no {FORMAT} header")
    if header.version != VERSION:
        raise RunFileError(
            f"{path} has version {header.version}, written by gpulab {header.gpulab}: this one "
            f"reads {VERSION}"
        )
