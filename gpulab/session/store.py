"""What runs leave for later ones, in one SQLite file of the user's state folder: the index of
history, and values of other kinds: ceilings of devices, choices of `gpulab.tune`, predictions.

A run never waits for it. Where the file is locked, unreadable or cannot be made, the store is in
memory for as long as it is open; where Python has no SQLite, it is empty. The index holds nothing
that the run files do not: what it lacks is read from them again, and a run whose file is gone
leaves it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gpulab.core.files import open_regular
from gpulab.core.limits import STORE_ROW_BYTES
from gpulab.core.run_file import read_run_file
from gpulab.core.wire import UNREADABLE
from gpulab.features.history.report import PastRun, past_run
from gpulab.report.build import build_report, fold_all
from gpulab.session.run_files import run_file_names, runs_folder, state_folder

VERSION = 1
"""Of the tables. It is in the file's name too: versions of gpulab that differ in it do not meet."""
NAME = f"store-{VERSION}.db"
_APPLICATION = 0x67706C62
_TABLES = (
    "CREATE TABLE runs (run_file BLOB PRIMARY KEY, started TEXT, path TEXT, scenario TEXT,"
    " source TEXT, run BLOB)",
    "CREATE INDEX runs_by_start ON runs (started)",
    "CREATE INDEX runs_by_source ON runs (source, started)",
    "CREATE TABLE kept (kind TEXT, owner TEXT, name TEXT, value BLOB,"
    " PRIMARY KEY (kind, owner, name))",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
_FILES = ("-wal", "-shm", "-journal", "")
"""What SQLite adds to the name of a database for the files beside it."""
_MOST_RUNS = 10_000
_MOST_OF_SOURCE = 1_000
_MOST_OF_SCENARIO = 50
_MOST_KEPT = 2_000
"""Values of each kind."""
_BUSY_S = 0.2
_CATCH_UP_S, _PART_S = 0.5, 0.1
"""Of reading run files: before a run in all, and until some are handed over."""
_FIRST, _PART = 100, 1_000
"""Runs that are handed over together: first those in sight."""
_RUN_FILE_BYTES, _END_BYTES = 16 << 20, 4096
_ERRORS: tuple[type[Exception], ...] = (OSError, UnicodeError)
try:
    import sqlite3
except ImportError:  # a Python that was built without SQLite
    HAS_SQLITE = False
else:
    HAS_SQLITE = True
    _ERRORS = (sqlite3.Error, *_ERRORS)
    _DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
    """Error codes of a file that is torn, no database, or one with other tables."""

_MOST_ASIDE = 100
_Type = TypeVar("_Type")
_Statement = tuple[str, Sequence[object]]


@dataclass(frozen=True)
class Part:
    """Some runs, the newest first. Where run files are read: how many have been, of how many."""

    runs: Sequence[PastRun]
    read: int = 0
    files: int = 0


class Store:
    """A context manager, for one thread and a moment. Nothing raises: without a file nothing is
    known of earlier runs, and nothing is kept.
    """

    def __init__(self) -> None:
        self._path = state_folder() / NAME
        self._inode = _inode(self._path)
        self.damaged = False
        """Whether something else is in its place, or it is torn."""
        self._busy = False
        """Whether another process held it for as long as this one waits: it waits once."""
        self._db: sqlite3.Connection | None = None
        if not HAS_SQLITE:
            return
        try:
            self._db = _connect(self._path)
        except _ERRORS as error:
            self._note(error)
            self._db = _prepared(sqlite3.connect(":memory:"))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        if self._db is not None:
            with suppress(sqlite3.Error):
                self._db.close()

    def set_aside(self) -> Path | None:
        """Move what is damaged out of the way of the next store; where it is now. None where
        nothing is damaged, and where that cannot be.
        """
        if not self.damaged or _inode(self._path) != self._inode:  # another process did
            return None
        self.__exit__()
        numbers = ("", *range(2, _MOST_ASIDE))
        places = (self._path.with_name(f"{NAME}.damaged{number}") for number in numbers)
        aside = next(filter(_is_free, places), None)
        if aside is None:
            return None
        try:
            for suffix in _FILES:
                with suppress(FileNotFoundError):
                    Path(f"{self._path}{suffix}").replace(f"{aside}{suffix}")
        except OSError:
            return None
        return aside

    def runs(self) -> Generator[Part, None, None]:
        """All runs, the newest first; then those of run files that it lacked, which it has
        afterwards.
        """
        query = "SELECT run, run_file FROM runs WHERE run NOT NULL ORDER BY started DESC"
        first = self._rows(f"{query} LIMIT {_FIRST}")
        # of thousands of files it takes a while to know which are there
        yield Part([run for run in _runs(first) if not _is_gone(Path(run.run_file))])
        unread = self._unread()
        shown = {key for _, key in first}
        rows = [row for row in self._rows(query) if row[1] not in shown]
        for start in range(0, len(rows), _PART):
            yield Part(_runs(rows[start : start + _PART]))
        yield from self._read(unread)

    def runs_of(self, source_sha256: str) -> list[PastRun]:
        """The newest of one file, the oldest first, after a moment of reading run files."""
        self._catch_up()
        rows = self._rows(
            "SELECT run, run_file FROM runs WHERE source = ? ORDER BY started DESC LIMIT ?",
            source_sha256,
            _MOST_OF_SOURCE,
        )
        return _runs(reversed(rows))

    def newest_of_each(self) -> list[PastRun]:
        """The newest run of every scenario, after a moment of reading run files."""
        self._catch_up()
        query = "SELECT run, run_file, max(started) FROM runs GROUP BY path, scenario"
        return _runs(self._rows(query))

    def last_result(self, of: PastRun) -> PastRun:
        """What stands for the scenario of its newest run: the newest that is no smoke run, or where
        that was stopped the last one before it that was not, if that has a result.
        """
        if not (of.stopped or of.smoke):
            return of
        rows = self._rows(
            "SELECT run, run_file FROM runs WHERE path = ? AND scenario = ?"
            " ORDER BY started DESC LIMIT ?",
            of.path,
            of.scenario,
            _MOST_OF_SCENARIO,
        )
        runs = _runs(rows)
        runs = [run for run in runs if not run.smoke] or runs
        ended = next((run for run in runs if not run.stopped), None)
        if ended is not None and ended.measured:
            return ended
        return runs[0] if runs else of

    def add_run(self, run: PastRun) -> bool:
        """Enter a run that has ended; returns whether it could be."""
        values = (run.at, run.path, run.scenario, run.source_sha256)
        return self._enter(Path(run.run_file), *values, _encoded(run))

    def kept(
        self, kind: str, owner: str, value: type[_Type], name: str | None = None
    ) -> list[_Type]:
        """The values of an owner, or that of one name; what was kept last comes last."""
        rows = self._rows(
            "SELECT value FROM kept WHERE kind = ? AND owner = ? AND name = ifnull(?, name)"
            " ORDER BY rowid",
            kind,
            owner,
            name,
        )
        return _decoded(rows, value)

    def keep(self, kind: str, owner: str, name: str, value: msgspec.Struct) -> bool:
        """In the place of what has that name; returns whether it could be."""
        query = "SELECT rowid FROM kept WHERE kind = ? ORDER BY rowid DESC LIMIT 1 OFFSET ?"
        return self._write(
            (
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)",
                (kind, owner, name, _encoded(value)),
            ),
            (f"DELETE FROM kept WHERE kind = ? AND rowid <= ({query})", (kind, kind, _MOST_KEPT)),
        )

    def _catch_up(self) -> None:
        """Read run files that it lacks, for a moment."""
        if self._db is None:
            return
        until = monotonic() + _CATCH_UP_S
        for _ in self._read(self._unread()):
            if monotonic() > until:
                break

    def _unread(self) -> list[Path]:
        """Run files that it lacks, the newest first; runs whose file is gone leave it."""
        query = "SELECT run_file FROM runs WHERE typeof(run_file) = 'blob'"
        known = {key for (key,) in self._rows(query)}
        folder = runs_folder()
        names = run_file_names()[:_MOST_RUNS]
        keys = [os.fsencode(name) for name in names]
        gone = known.difference(keys)
        self._write(
            *(
                ("DELETE FROM runs WHERE run_file = ?", (key,))
                for key in gone
                if _is_gone(folder / os.fsdecode(key))
            )
        )
        unread = [name for name, key in zip(names, keys, strict=True) if key not in known]
        return [folder / name for name in unread]

    def _read(self, paths: Sequence[Path]) -> Iterator[Part]:
        """Read run files and enter them: what is no run too, so that it is read once."""
        runs: list[PastRun] = []
        part_by = monotonic() + _PART_S
        for read, path in enumerate(paths, 1):
            if _has_ended(path):
                run = _run_of(path)
                if run is None:
                    self._enter(path, None, None, None, None, None)
                else:
                    self.add_run(run)
                    runs.append(run)
            if monotonic() >= part_by or read == len(paths):
                yield Part(runs, read, len(paths))
                runs = []
                part_by = monotonic() + _PART_S

    def _enter(self, path: Path, *values: object) -> bool:
        oldest = f"SELECT started FROM runs ORDER BY started DESC LIMIT 1 OFFSET {_MOST_RUNS}"
        return self._write(
            ("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)", (_key(path), *values)),
            (f"DELETE FROM runs WHERE started <= ({oldest})", ()),
        )

    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        if self._db is None:
            return []
        try:
            return self._db.execute(query, values).fetchall()
        except _ERRORS as error:
            self._note(error)
            return []

    def _write(self, *statements: _Statement) -> bool:
        """All of them or none; returns whether it could be."""
        if self._db is None or self._busy:
            return False
        try:
            with self._db:
                for statement, values in statements:
                    self._db.execute(statement, values)
        except _ERRORS as error:
            self._note(error)
            return False
        return True

    def _note(self, error: Exception) -> None:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF == sqlite3.SQLITE_BUSY:
            self._busy = True
        if isinstance(error, _NotOursError) or (code is not None and code & 0xFF in _DAMAGE):
            self.damaged = True


def _is_free(place: Path) -> bool:
    """Whether no store was set aside there before."""
    return not any(os.path.lexists(f"{place}{suffix}") for suffix in _FILES)


def _is_gone(run_file: Path) -> bool:
    """Also where no file can have its name: anything may be in a row."""
    try:
        return not run_file.exists()
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG


class _NotOursError(OSError):
    """Something else is in the place of the store."""


def _connect(path: Path) -> sqlite3.Connection:
    """The store in a file, which is made where there is none. OSError, sqlite3.Error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for suffix in _FILES:
        with suppress(FileNotFoundError):
            if not stat.S_ISREG(Path(f"{path}{suffix}").stat().st_mode):  # a pipe would block
                raise _NotOursError(path)
    db = sqlite3.connect(path, timeout=_BUSY_S)
    try:
        return _prepared(db)
    except _ERRORS:
        db.close()
        raise


def _prepared(db: sqlite3.Connection) -> sqlite3.Connection:
    """The same with its tables. OSError, sqlite3.Error."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, STORE_ROW_BYTES)
    db.execute("PRAGMA trusted_schema = OFF")
    if not _is_ours(db):
        db.execute("BEGIN IMMEDIATE")
        if not _is_ours(db):  # nor did another process make it meanwhile
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
                raise _NotOursError
            for statement in _TABLES:
                db.execute(statement)
        db.commit()
    with suppress(sqlite3.OperationalError):  # another process uses it
        db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    return db


def _is_ours(db: sqlite3.Connection) -> bool:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return (application, version) == (_APPLICATION, VERSION)


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except OSError:
        return None


def _encoded(value: msgspec.Struct) -> bytes | None:
    """None where it holds what is no text: such a row is read as none."""
    try:
        return msgspec.json.encode(value)
    except UnicodeError:
        return None


def _decoded(rows: Iterable[tuple[Any, ...]], kind: type[_Type]) -> list[_Type]:
    """The first value of each row, as far as it is one."""
    decoder = msgspec.json.Decoder(kind)
    values = []
    for data, *_ in rows:
        with suppress(*UNREADABLE, TypeError):
            values.append(decoder.decode(data))
    return values


def _key(path: Path) -> bytes:
    """A run file in the state folder by its name: that folder has several paths, or is copied."""
    return os.fsencode(path.name if path.parent == runs_folder() else path)


def _runs(rows: Iterable[tuple[Any, ...]]) -> list[PastRun]:
    """What rows hold that begin with a run and the key of its file, as far as it is one."""
    decoder = msgspec.json.Decoder(PastRun)
    folder = os.fsencode(runs_folder())
    runs = []
    for data, key, *_ in rows:
        with suppress(*UNREADABLE, TypeError):
            run_file = os.fsdecode(os.path.join(folder, key))  # noqa: PTH118 - of bytes
            runs.append(replace(decoder.decode(data), run_file=run_file))
    return runs


def _has_ended(path: Path) -> bool:
    """Whether the last event of a run is in it: others may still be written."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _END_BYTES))
            return b'"RunEnded"' in file.read()
    except OSError:
        return False


def _run_of(path: Path) -> PastRun | None:
    """None of a file that is too large, is no run file, or makes no sense."""
    try:
        if path.stat().st_size > _RUN_FILE_BYTES:
            return None
        state = fold_all(read_run_file(path).events)
        return None if state.outcome is None else past_run(state, build_report(state, str(path)))
    except Exception:  # whatever a stranger wrote there
        return None
