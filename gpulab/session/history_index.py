"""The index of runs on this machine: JSON lines in the user's state folder, one for each run that has ended.

It holds nothing that the run files do not: where it is missing or torn it is made again of the newest of them. Other
processes write to it as well, so that whoever changes it holds a lock.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

import msgspec

from gpulab.limits import HISTORY_BYTES, HISTORY_RUN_BYTES
from gpulab.protocol.files import read_regular, write_whole
from gpulab.protocol.run_file import read_run_file
from gpulab.protocol.text import plain_json
from gpulab.protocol.wire import UNREADABLE
from gpulab.report.build import build_report
from gpulab.report.past_run import PastRun, past_run
from gpulab.report.state import fold_all

_NAME, _LOCK = "history.jsonl", "history.lock"
_FORMAT, _VERSION = "gpulab.history", 1
_HEADER = b'{"format":"%s","version":%d}\n' % (_FORMAT.encode(), _VERSION)
_LOCK_S = 0.5
_REBUILD_S, _REBUILD_FILES, _REBUILD_FILE_BYTES = 1.5, 100, 16 << 20
"""Of making it again, which is done once, before a run starts."""
_decoder = msgspec.json.Decoder(PastRun)


class _Header(msgspec.Struct):
    format: str
    version: int


class _TornError(Exception):
    """The index is missing, or something in it is no run."""


class HistoryIndex:
    """The index in one folder. Nothing raises here: without an index there is no history, that is all."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / _NAME

    def runs(self, source_sha256: str | None = None) -> list[PastRun]:
        """All runs, or those of one file, the oldest first."""
        needle = b"" if source_sha256 is None else msgspec.json.encode(source_sha256)
        try:
            return self._read(needle)
        except _TornError:
            with suppress(OSError, _TornError):
                self._rebuild()
                return self._read(needle)
        except OSError:
            pass
        return []

    def add(self, run: PastRun) -> bool:
        """Append a run that has ended; returns whether it could be."""
        line = _line(run)
        if line is None:
            return False
        try:
            try:
                self._append(line, run)
            except (_TornError, FileNotFoundError):
                self._rebuild(but=run.run_file)
                self._append(line, run)
        except (OSError, _TornError):
            return False
        return True

    def _read(self, needle: bytes) -> list[PastRun]:
        """The runs whose lines hold `needle`. _TornError, OSError."""
        lines = self._lines()
        try:
            return [_decoder.decode(line) for line in lines if needle in line]
        except UNREADABLE as error:
            raise _TornError from error

    def _lines(self) -> list[bytes]:
        """All lines but the header. _TornError where one is cut; OSError where the file is a newer gpulab's."""
        header, _, rest = self._data().partition(b"\n")
        _check(header)
        lines = rest.split(b"\n")
        if lines.pop() or not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
            raise _TornError
        return lines

    def _data(self) -> bytes:
        try:
            return read_regular(self._path, HISTORY_BYTES + HISTORY_RUN_BYTES)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EFBIG):
                raise _TornError from error
            raise

    def _append(self, line: bytes, run: PastRun) -> None:
        """_TornError, OSError."""
        with self._locked():
            how = os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, how), "r+b", buffering=0) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "not a regular file")
                _check(os.pread(file.fileno(), len(_HEADER) + 16, 0).partition(b"\n")[0])
                if os.pread(file.fileno(), 1, status.st_size - 1) != b"\n":
                    raise _TornError  # a writer was killed
                if status.st_size + len(line) <= HISTORY_BYTES:
                    file.write(line)
                    return
            self._write([*self._read(b""), run], HISTORY_BYTES // 2)

    def _rebuild(self, but: str = "") -> None:
        """What can be read of the index, and the newest run files beside it that it lacks, `but` one. OSError."""
        with self._locked():
            known = {run.run_file: run for run in self._readable()}
            until = monotonic() + _REBUILD_S
            for path in _newest(self._folder / "runs", _REBUILD_FILES):
                if monotonic() > until:
                    break
                if str(path) not in (*known, but) and (run := _run_of(path)) is not None:
                    known[run.run_file] = run
            self._write(known.values(), HISTORY_BYTES // 2)

    def _readable(self) -> Iterator[PastRun]:
        with suppress(_TornError):
            header, *lines = self._data().split(b"\n")
            with suppress(_TornError):
                _check(header)
            for line in lines:
                with suppress(*UNREADABLE):
                    yield _decoder.decode(line)

    def _write(self, runs: Iterable[PastRun], most_bytes: int) -> None:
        """The newest runs that fit, in place of the file."""
        lines: list[bytes] = []
        size = 0
        for run in sorted(runs, key=lambda run: run.at, reverse=True):
            line = _line(run)
            if line is None:
                continue
            size += len(line)
            if size > most_bytes:
                break
            lines.append(line)
        write_whole(self._path, b"".join([_HEADER, *reversed(lines)]))

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


def _check(header: bytes) -> None:
    """_TornError where this begins no index; OSError where it is a newer one, which is left alone."""
    try:
        read = msgspec.json.decode(header, type=_Header)
    except UNREADABLE as error:
        raise _TornError from error
    if read.format != _FORMAT:
        raise _TornError
    if read.version > _VERSION:
        raise OSError("the index is of a newer gpulab")


def _line(run: PastRun) -> bytes | None:
    """None of a run that would not be read again, or is too large."""
    try:
        line = plain_json(msgspec.json.encode(run)) + b"\n"
        _decoder.decode(line)
    except UNREADABLE:
        return None
    return line if len(line) <= HISTORY_RUN_BYTES else None


def _newest(folder: Path, most: int) -> list[Path]:
    """Run files by their names, which begin with the time, the newest first."""
    try:
        names = sorted((entry.name for entry in os.scandir(folder) if entry.name.endswith(".jsonl")), reverse=True)
    except OSError:
        return []
    return [folder / name for name in names[:most]]


def _run_of(path: Path) -> PastRun | None:
    """A run file as a line of the index; None where it is none, has no end, or makes no sense."""
    try:
        if path.stat().st_size > _REBUILD_FILE_BYTES:
            return None
        state = fold_all(read_run_file(path).events)
        return None if state.outcome is None else past_run(state, build_report(state, str(path)))
    except Exception:  # whatever a stranger wrote there
        return None
