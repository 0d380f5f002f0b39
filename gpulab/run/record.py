"""The run file: append-only JSON lines, a header with the version first, then every event as it came.

What was written survives any death of the writer. A line without its newline was cut and is dropped; an
unknown type in a known version is skipped and counted; a newer version is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from gpulab.model.events import AnyEvent, Event
from gpulab.model.wire import decode, encode

FORMAT = "gpulab.run"
VERSION = 1


class RecordError(ValueError):
    """The file is no run file, or one of a newer gpulab."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    format: str
    version: int
    gpulab: str


@dataclass(frozen=True)
class Recording:
    """What a run file holds: its events, and what could not be read of it."""

    header: Header
    events: list[AnyEvent]
    unknown: int
    garbled: list[int]
    """Line numbers, from 1, of lines that are no events."""
    cut: bool
    """Whether an unterminated last line was dropped."""

    @property
    def problems(self) -> list[str]:
        found = [f"line {number} is garbled and was skipped" for number in self.garbled]
        if self.unknown:
            found.append(f"{self.unknown} events of unknown types were skipped: written by another gpulab?")
        return found


class RunFile:
    """Writes one run as it goes. Writes are whole lines, straight to the kernel."""

    def __init__(self, path: Path, gpulab: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._write(encode(Header(format=FORMAT, version=VERSION, gpulab=gpulab)))

    def append(self, events: Sequence[Event]) -> None:
        """OSError where the disk is full: the caller says so and goes on without."""
        self._write(b"".join(encode(event) for event in events))

    def close(self) -> None:
        os.close(self._fd)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def read(path: Path) -> Recording:
    """Read a run file, whole or cut. RecordError where it is none, or where its version is newer."""
    lines = path.read_bytes().split(b"\n")
    cut = lines.pop() != b""
    if not lines:
        raise RecordError(f"{path} has no complete line: the run ended before it began")
    try:
        header = msgspec.json.decode(lines[0], type=Header)
    except (msgspec.DecodeError, UnicodeError):
        header = Header(format="", version=0, gpulab="")
    if header.format != FORMAT:
        raise RecordError(f"{path} is not a run file: its first line is no {FORMAT} header")
    if header.version > VERSION:
        raise RecordError(
            f"{path} has version {header.version}, written by gpulab {header.gpulab}: this one reads up to {VERSION}"
        )
    events: list[AnyEvent] = []
    garbled: list[int] = []
    unknown = 0
    for number, line in enumerate(lines[1:], start=2):
        try:
            event = decode(line)
        except ValueError:
            garbled.append(number)
        else:
            unknown += event is None
            events += [] if event is None else [event]
    return Recording(header, events, unknown, garbled, cut)


def at_home(path: Path) -> str:
    """How a path is shown: below the home folder as ~/..."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (RuntimeError, ValueError):  # there is no home folder, or it lies elsewhere
        return str(path)


def default_path(scenario: str) -> Path:
    """A new file under the user's state directory, named by time, scenario and process."""
    from platformdirs import user_state_path

    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return user_state_path("gpulab") / "runs" / f"{now}-{scenario}-{os.getpid()}.jsonl"
