"""The index of runs on this machine: JSON lines in the user's state folder, one for each run that
has ended.

It holds nothing that the run files do not. Where it is missing or torn it is made again from all of
them, the newest first; its header says below which name they are still to be read, so that this may
go on another time. Other processes write to it as well: whoever changes it holds a lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec

from gpulab.core.files import open_regular, write_whole
from gpulab.core.limits import HISTORY_BYTES, HISTORY_RUN_BYTES
from gpulab.core.run_file import read_run_file
from gpulab.core.text import plain_json
from gpulab.core.wire import UNREADABLE
from gpulab.features.history.report import PastRun, past_run
from gpulab.report.build import build_report, fold_all
from gpulab.session.run_files import run_files

_NAME, _LOCK = "history.jsonl", "history.lock"
_FORMAT, _VERSION = "gpulab.history", 1
_MOST_BYTES = 32 << 20
"""Of the index, of which three quarters stay where it would be larger. 10,000 runs take 12 MB."""
_HEADER_BYTES = 256
_FIRST, _PART = 100, 1_000
"""Runs that are handed over together: first those in sight."""
_LOCK_S = 0.5
_PART_S, _STEP_S, _SAVE_S = 0.1, 0.5, 5.0
"""Of reading run files again: until some are handed over, before a run in all, and until they are
in the index.
"""
_RUN_FILE_BYTES = 16 << 20
_ALL = "~"
"""Sorts behind the name of every run file: they begin with the time."""
_decoder = msgspec.json.Decoder(PastRun)


class _Header(msgspec.Struct, frozen=True, omit_defaults=True):
    format: str
    version: int
    unread_below: str = ""
    """Run files whose names sort below this are still to be read; empty where there are none."""


class _Key(msgspec.Struct, frozen=True):
    """Which scenario a line is about, in an eighth of the time that the whole line takes."""

    path: str
    scenario: str


@dataclass(frozen=True)
class Part:
    """Some runs, the newest first. Where run files are read again: how many have been, of how
    many.
    """

    runs: Sequence[PastRun]
    read: int = 0
    files: int = 0


class HistoryIndex:
    """The index in one folder. Nothing raises here: without an index there is no history, that is
    all.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / _NAME

    def parts(self) -> Generator[Part, None, None]:
        """All runs, the newest first; then those of run files that the index lacks, which it has
        afterwards.

        Whoever leaves earlier keeps what was read by then.
        """
        keys: set[tuple[str, str]] = set()
        with suppress(OSError):
            while below := (yield from self._entered(keys)):
                if not (yield from self._read_run_files(below, keys)):
                    break

    def _entered(self, keys: set[tuple[str, str]]) -> Generator[Part, None, str]:
        """Those in the index, less the keys; returns below which name run files are to be read.
        OSError.
        """
        lines, below = self._read(_MOST_BYTES)
        runs: list[PastRun] = []
        most = _FIRST
        for line in reversed(lines):
            if (run := _decoded(line)) is None:
                below = _ALL
            elif (run.at, run.run_file) not in keys:
                keys.add((run.at, run.run_file))
                runs.append(run)
            if len(runs) == most:
                yield Part(runs)
                runs, most = [], _PART
        yield Part(runs)
        return below

    def runs(self, source_sha256: str) -> list[PastRun]:
        """Those of one file among the latest HISTORY_BYTES, the oldest first."""
        needle = msgspec.json.encode(source_sha256)
        decoded = [_decoded(line) for line in self._latest(HISTORY_BYTES) if needle in line]
        return list({(run.at, run.run_file): run for run in decoded if run is not None}.values())

    def newest_of_each(self) -> list[PastRun]:
        """The newest run of every scenario."""
        newest: dict[_Key, PastRun | None] = {}
        decoder = msgspec.json.Decoder(_Key)
        for line in reversed(self._latest(_MOST_BYTES)):
            with suppress(*UNREADABLE):
                if newest.get(key := decoder.decode(line)) is None:
                    newest[key] = _decoded(line)
        return [run for run in newest.values() if run is not None]

    def add(self, run: PastRun) -> bool:
        """Append a run that has ended; returns whether it could be. It takes as long however much
        there is.
        """
        line = _line(run)
        if line is None:
            return False
        try:
            with self._locked():
                if not self._append(line):
                    lines, below = self._read(_MOST_BYTES * 3 // 4)
                    self._write([*lines, line], below)
        except OSError:
            return False
        return True

    def _latest(self, most_bytes: int) -> list[bytes]:
        """Its last lines; where it is not whole, after run files were read again for a moment."""
        with suppress(OSError):
            lines, below = self._read(most_bytes)
            if not below:
                return lines
            until = monotonic() + _STEP_S
            with closing(self.parts()) as parts:
                for part in parts:
                    if part.files and monotonic() > until:
                        break
            return self._read(most_bytes)[0]
        return []

    def _read(self, most_bytes: int) -> tuple[list[bytes], str]:
        """(its last lines, below which name run files are to be read). OSError where it is a newer
        gpulab's.
        """
        try:
            with open_regular(self._path) as file:
                header = file.readline(_HEADER_BYTES)
                if file.seek(0, os.SEEK_END) - len(header) > most_bytes:
                    file.seek(-most_bytes, os.SEEK_END)
                    file.readline()
                else:
                    file.seek(len(header))
                *lines, rest = file.read().split(b"\n")
        except FileNotFoundError:
            return [], _ALL
        below = _unread_below(header)
        whole = [line for line in lines if line.startswith(b"{") and line.endswith(b"}")]
        return whole, _ALL if below is None or rest or len(whole) < len(lines) else below

    def _append(self, line: bytes) -> bool:
        """False where that would be too much. OSError."""
        how = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        with os.fdopen(os.open(self._path, how, 0o644), "r+b", buffering=0) as file:
            status, fd = os.fstat(file.fileno()), file.fileno()
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            _unread_below(os.pread(fd, _HEADER_BYTES, 0).partition(b"\n")[0])
            data = line + b"\n"
            if not status.st_size:
                data = _header(_ALL) + data
            elif os.pread(fd, 1, status.st_size - 1) != b"\n":
                data = b"\n" + data  # a writer was killed
            if status.st_size + len(data) > _MOST_BYTES:
                return False
            if file.write(data) != len(data):
                os.ftruncate(fd, status.st_size)
                raise OSError(errno.ENOSPC, "the disk is full")
        return True

    def _read_run_files(
        self, below: str, keys: set[tuple[str, str]]
    ) -> Generator[Part, None, bool]:
        """The runs of all but the keys, the newest first; returns whether the index was changed
        meanwhile.
        """
        files = {run_file for _, run_file in keys}
        paths = [path for path in run_files(self._folder / "runs", below) if str(path) not in files]
        runs: list[PastRun] = []
        shown = kept = read = 0
        part_by, save_by = monotonic() + _PART_S, monotonic() + _SAVE_S
        try:
            for path in paths:
                if (run := _run_of(path)) is not None:
                    runs.append(run)
                    keys.add((run.at, run.run_file))
                read += 1
                if monotonic() >= part_by or read == len(paths):
                    yield Part(runs[shown:], read, len(paths))
                    shown, part_by = len(runs), monotonic() + _PART_S
                if monotonic() >= save_by:
                    with suppress(OSError):
                        if not self._keep(runs[kept:], below, path.name):
                            yield Part(runs[shown:], read, len(paths))
                            return True
                        kept, below = len(runs), path.name
                    save_by = monotonic() + _SAVE_S
        finally:
            reached = "" if read == len(paths) else paths[read - 1].name if read else below
            with suppress(OSError):
                self._keep(runs[kept:], below, reached)
        return False

    def _keep(self, runs: Sequence[PastRun], before: str, below: str) -> bool:
        """Enter runs that were read again, all below `before` and none below `below`. OSError.

        False where there is no more to do: another process changed it meanwhile, or it is full.
        """
        with self._locked():
            present, current = self._read(_MOST_BYTES)
            lines: dict[tuple[str, str], bytes] = {}
            for line in present:
                if (run := _decoded(line)) is None:
                    current = _ALL
                else:
                    lines[run.at, run.run_file] = line
            for run in runs:
                if (made := _line(run)) is not None:
                    lines.setdefault((run.at, run.run_file), made)
            newest: list[bytes] = []
            size = 0
            for _, line in sorted(lines.items(), reverse=True):
                size += len(line) + 1
                if size > _MOST_BYTES * 3 // 4:
                    self._write(newest[::-1], "")
                    return False
                newest.append(line)
            self._write(newest[::-1], below if current == before else current)
            return current == before

    def _write(self, lines: Sequence[bytes], below: str) -> None:
        write_whole(self._path, b"".join([_header(below), *(line + b"\n" for line in lines)]))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """OSError where another process holds the lock for too long."""
        self._folder.mkdir(parents=True, exist_ok=True)
        how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        fd = os.open(self._folder / _LOCK, how, 0o644)
        try:
            _lock(fd)
            yield
        finally:
            os.close(fd)


def _lock(fd: int, now: Callable[[], float] = monotonic) -> None:
    until = now() + _LOCK_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if now() > until:
                raise
            time.sleep(0.01)
        except OSError:  # a file system without locks
            return None


def _header(below: str) -> bytes:
    return msgspec.json.encode(_Header(_FORMAT, _VERSION, below)) + b"\n"


def _unread_below(header: bytes) -> str | None:
    """None where this begins no index; OSError where it is a newer one, which is left alone."""
    try:
        read = msgspec.json.decode(header, type=_Header)
    except UNREADABLE:
        return None
    if read.format != _FORMAT:
        return None
    if read.version > _VERSION:
        raise OSError("the index is of a newer gpulab")
    return read.unread_below


def _decoded(line: bytes) -> PastRun | None:
    try:
        return _decoder.decode(line)
    except UNREADABLE:
        return None


def _line(run: PastRun) -> bytes | None:
    """None of a run that would not be read again, or is too large."""
    try:
        line = plain_json(msgspec.json.encode(run))
    except UNREADABLE:
        return None
    return line if len(line) < HISTORY_RUN_BYTES and _decoded(line) is not None else None


def _run_of(path: Path) -> PastRun | None:
    """A run file as a line of the index; None where it is none, has no end, or makes no sense."""
    try:
        if path.stat().st_size > _RUN_FILE_BYTES:
            return None
        state = fold_all(read_run_file(path).events)
        return None if state.outcome is None else past_run(state, build_report(state, str(path)))
    except Exception:  # whatever a stranger wrote there
        return None
