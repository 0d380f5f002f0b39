"""The run file: append-only JSON lines, a header with the version first, then every event as it
came.

What was written survives any death of the writer. A line without its newline was cut off and is
dropped; an unknown type is skipped and counted; another version is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpulab.core.events import Event
from gpulab.core.failures import garbled_lines, unknown_events
from gpulab.core.files import open_regular
from gpulab.core.findings import Finding
from gpulab.core.limits import RUN_FILE_LINE_BYTES
from gpulab.core.text import plain
from gpulab.core.wire import UNREADABLE, decode, encode

FORMAT = "gpulab.run"
VERSION = 2
_CHUNK = 1 << 20


class RunFileError(ValueError):
    """The file is no run file, or one of another gpulab."""

    def __init__(self, message: str) -> None:
        super().__init__(plain(message))  # it names the file, whose name may hold anything


class Header(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    version: int
    gpulab: str


def is_run_file(start: bytes) -> bool:
    """Whether a file that starts like this is a run file."""
    return start.startswith(b'{"format":"' + FORMAT.encode() + b'"')


class RunFile:
    """Writes one run as it goes: whole lines, straight to the kernel. FileExistsError: runs are
    never overwritten.
    """

    def __init__(self, path: Path, gpulab: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        self._write(encode(Header(format=FORMAT, version=VERSION, gpulab=gpulab)))

    def append(self, events: Sequence[Event]) -> None:
        """OSError where the disk is full: the caller says so and goes on without."""
        self._write(b"".join(map(encode, events)))

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


class RunFileReader:
    """Reads a run file as far as it has been written, and on from there at the next call.

    `garbled` holds the numbers, from 1, of lines that are no events; `unknown` counts events of
    unknown types.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.header: Header | None = None
        self.garbled: list[int] = []
        self.unknown = 0
        self._rest = b""
        self._lines = 0
        self._file = open_regular(path)

    def take(self) -> list[Event]:
        """The events since the last call. RunFileError where it is no run file, or where it has
        another version.
        """
        events: list[Event] = []
        while data := self._file.read(_CHUNK):
            *lines, rest = (self._rest + data).split(b"\n")
            # of a line that is too long the beginning, which is no event
            self._rest = rest[: RUN_FILE_LINE_BYTES + 1]
            if self.header is None and (lines or len(rest) > RUN_FILE_LINE_BYTES):
                self.header = _header(self.path, lines.pop(0) if lines else rest)
                self._lines = 1
            if self.header is not None:
                events += self._decoded(lines)
        return events

    def close(self) -> None:
        self._file.close()

    @property
    def cut(self) -> bool:
        """Whether the file ends in a line without its newline."""
        return self._rest != b""

    @property
    def findings(self) -> list[Finding]:
        """What could not be read."""
        problems = []
        if self.garbled:
            problems.append(garbled_lines(lines=[str(number) for number in self.garbled]))
        if self.unknown:
            problems.append(unknown_events(count=self.unknown))
        return problems

    def _decoded(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        for line in lines:
            self._lines += 1
            try:
                event = decode(line[: RUN_FILE_LINE_BYTES + 1])
            except ValueError:
                self.garbled.append(self._lines)
                continue
            if event is None:
                self.unknown += 1
            else:
                events.append(event)
        return events


@dataclass(frozen=True)
class Recording:
    """What a run file holds: its events, and what could not be read of it."""

    header: Header
    events: list[Event]
    findings: list[Finding]
    garbled: list[int]
    unknown: int
    cut: bool
    """Whether an unterminated last line was dropped."""


def read_run_file(path: Path) -> Recording:
    """Read a run file, whole or cut. RunFileError where it is none, or where it has another
    version.
    """
    reader = RunFileReader(path)
    try:
        events = reader.take()
    finally:
        reader.close()
    if reader.header is None:
        raise RunFileError(f"{path} has no complete line: the run ended before it began")
    return Recording(
        reader.header, events, reader.findings, reader.garbled, reader.unknown, reader.cut
    )


def _header(path: Path, line: bytes) -> Header:
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
    return header
