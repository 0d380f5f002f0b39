"""A class: what the teacher's screen shows, in a small file beside the shared runs."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from time import time

import msgspec

from gpulab.catalog.source import real_path
from gpulab.core.files import MODE, read_regular, write_whole
from gpulab.core.host import host_name
from gpulab.core.limits import NAME_LENGTH
from gpulab.core.text import cut, one_line
from gpulab.core.wire import UNREADABLE


class Replayed(msgspec.Struct, frozen=True):
    """The recording of a lesson that is played: at `at_s` of it since `since`, in seconds since the
    epoch, and what a class has guessed of it.
    """

    at_s: float
    since: float
    speed: float
    playing: bool
    guesses: tuple[float, ...] = ()

    @property
    def position_s(self) -> float:
        """Return where it is by now."""
        passed_s = max(0.0, time() - self.since) if self.playing else 0.0
        return self.at_s + passed_s * self.speed


class Place(msgspec.Struct, frozen=True):
    """A place of the screen: the scenario under the cursor, its tab, and the panel of its run that
    was chosen; empty where there is none.
    """

    lesson: str
    tab: str
    panel: str = ""
    zoomed: bool = False
    answers: bool = False
    """Those to the questions of the lesson are shown."""
    replayed: Replayed | None = None


class Shown(msgspec.Struct, frozen=True):
    """What a teacher shows: the class by its `name`, and since when, in seconds since the epoch."""

    name: str
    host: str
    at: float
    place: Place


def watch_command(host: str, folder: Path) -> str:
    """Return what the class types."""
    return f"ssh -t {shlex.quote(host)} gpulab --watch {shlex.quote(str(real_path(folder)))}"


class ClassFile:
    """The file of a folder: one process writes it, any number read it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "class.json"
        self._version: tuple[int, int] | None = None
        self._shown: Shown | None = None

    def write(self, name: str, place: Place) -> None:
        """Replace what was shown before. OSError where that cannot be."""
        # the umask may let a group write, and write_whole keeps what a file has
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, MODE))
        shown = Shown(cut(one_line(name), NAME_LENGTH), host_name(), time(), place)
        write_whole(self._path, msgspec.json.encode(shown) + b"\n")

    def remove(self) -> None:
        """The teacher has left."""
        with suppress(OSError):
            self._path.unlink()

    def read(self) -> Shown | None:
        """Return what a teacher shows; None where there is none. It costs one system call where
        nothing has changed.
        """
        try:
            status = self._path.stat()
            version = status.st_mtime_ns, status.st_ino
            if version != self._version:
                self._version = version
                self._shown = _decoded(read_regular(self._path, 1 << 12))
        except OSError:
            self._version = self._shown = None
            return None
        # of a teacher whose process was killed
        return self._shown if time() - status.st_mtime < 12 * 3600 else None


def _decoded(data: bytes) -> Shown | None:
    """None where it is no such file."""
    try:
        shown = msgspec.json.decode(data, type=Shown)
    except UNREADABLE:
        return None
    name, host = (cut(one_line(text), NAME_LENGTH) for text in (shown.name, shown.host))
    return msgspec.structs.replace(shown, name=name, host=host)
