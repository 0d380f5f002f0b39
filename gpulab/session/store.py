"""What runs leave for later ones, in one SQLite file of the user's state folder: the index of
history, and values of other kinds: ceilings of devices, choices of `gpulab.tune`, predictions.

The index holds nothing that the run files do not: what it lacks is read from them again, and a run
whose file is gone leaves it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, closing, suppress
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from gpulab.core.files import open_regular
from gpulab.core.findings import Finding
from gpulab.core.run_file import read_run_file
from gpulab.core.wire import UNREADABLE
from gpulab.report.build import build_report, fold_all
from gpulab.report.findings import store_set_aside, store_unused
from gpulab.report.past import PastRun, past_run
from gpulab.session.run_files import run_file_names, runs_folder, state_folder

VERSION = 1
"""Of the tables. It is in the file's name too: versions of gpulab that differ in it do not meet."""
NAME = f"store-{VERSION}.db"
_TABLES = (
    "PRAGMA journal_mode = WAL",
    "CREATE TABLE IF NOT EXISTS runs (run_file BLOB PRIMARY KEY, started TEXT, path TEXT,"
    " scenario TEXT, source TEXT, run BLOB)",
    "CREATE INDEX IF NOT EXISTS runs_by_start ON runs (started)",
    "CREATE INDEX IF NOT EXISTS runs_by_source ON runs (source, started)",
    "CREATE TABLE IF NOT EXISTS kept (kind TEXT, owner TEXT, name TEXT, value BLOB,"
    " PRIMARY KEY (kind, owner, name))",
    "PRAGMA application_id = 0x67706C62",
    f"PRAGMA user_version = {VERSION}",
)
_CATCH_UP_S = 0.5
"""Of reading run files before a run, which waits for it."""
_RUN_FILE_BYTES, _END_BYTES = 16 << 20, 4096
_ERRORS: tuple[type[Exception], ...] = (OSError,)
_DAMAGE: tuple[int, ...] = ()
try:
    import sqlite3
except ImportError:  # a Python that was built without SQLite
    _HAS_SQLITE = False
else:
    _HAS_SQLITE = True
    _ERRORS = (OSError, sqlite3.Error)
    _DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

_Type = TypeVar("_Type")


class Store:
    """A context manager, for one thread and a moment. What SQLite or the disk raises within its
    block ends the block, and goes no further: `problem` says what it was.
    """

    def __init__(self) -> None:
        self._path = state_folder() / NAME
        self._opened = ExitStack()
        self._error: Exception | None = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *raised: object) -> bool:
        _, error, _ = raised
        self._opened.close()
        if not isinstance(error, _ERRORS):
            return False
        self._error = error
        return True

    def problem(self) -> Finding | None:
        """Return the problem that ended its block; None where nothing did. What is damaged is moved
        out of the way of the next store.
        """
        error = self._error
        if error is None:
            return None
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            aside = self._path.with_name(f"{NAME}.damaged")
            with suppress(OSError):
                self._path.replace(aside)
                for suffix in ("-wal", "-shm"):
                    Path(f"{self._path}{suffix}").unlink(missing_ok=True)
                return store_set_aside(file=str(aside))
        return store_unused(why=getattr(error, "strerror", None) or str(error))

    def runs(self) -> list[PastRun]:
        """All runs, the newest first, after the run files that it lacks have been read."""
        for path in self.unread():
            self.read(path)
        return self.known()

    def known(self) -> list[PastRun]:
        """All runs that it has, the newest first."""
        query = "SELECT run, run_file FROM runs WHERE run NOT NULL ORDER BY started DESC"
        return _runs(self._db.execute(query))

    def unread(self) -> list[Path]:
        """Run files that it lacks, the newest first; runs whose file is gone leave it."""
        folder = runs_folder()
        names = run_file_names()
        known = {os.fsdecode(key) for (key,) in self._db.execute("SELECT run_file FROM runs")}
        gone = [name for name in known.difference(names) if _is_gone(folder / name)]
        with self._db:
            keys = [(os.fsencode(name),) for name in gone]
            self._db.executemany("DELETE FROM runs WHERE run_file = ?", keys)
        return [folder / name for name in names if name not in known]

    def read(self, path: Path) -> PastRun | None:
        """Enter the run of a run file, which it returns if it has ended; what is no run is entered
        too, so that it is read once.
        """
        if not _has_ended(path):
            return None
        run = _run_of(path)
        if run is None:
            self._enter(path, None, None, None, None, None)
        else:
            self.add_run(run)
        return run

    def runs_of(self, source_sha256: str) -> list[PastRun]:
        """The newest of one file, the oldest first, after a moment of reading run files."""
        self._catch_up()
        query = "SELECT run, run_file FROM runs WHERE source = ? ORDER BY started DESC LIMIT ?"
        return _runs(self._db.execute(query, (source_sha256, 1_000)))[::-1]

    def newest_of_each(self) -> list[PastRun]:
        """The newest run of every scenario, after a moment of reading run files."""
        self._catch_up()
        query = "SELECT run, run_file, max(started) FROM runs GROUP BY path, scenario"
        return _runs(self._db.execute(query))

    def last_result(self, of: PastRun) -> PastRun:
        """Return the run that represents a scenario in place of its newest: the newest that is no
        smoke run, or where that was stopped the last one before it that was not, if that has a
        result.
        """
        if not (of.stopped or of.smoke):
            return of
        query = (
            "SELECT run, run_file FROM runs WHERE path = ? AND scenario = ?"
            " ORDER BY started DESC LIMIT ?"
        )
        runs = _runs(self._db.execute(query, (of.path, of.scenario, 50)))
        runs = [run for run in runs if not run.smoke] or runs
        ended = next((run for run in runs if not run.stopped), None)
        if ended is not None and ended.measured:
            return ended
        return runs[0] if runs else of

    def add_run(self, run: PastRun) -> None:
        """Enter a run that has ended."""
        # the key of the row names the file
        encoded = msgspec.json.encode(replace(run, run_file=""))
        values = (run.at, run.path, run.scenario, run.source_sha256, encoded)
        self._enter(Path(run.run_file), *values)

    def kept(
        self, kind: str, owner: str, value: type[_Type], name: str | None = None
    ) -> list[_Type]:
        """The values of an owner, or that of one name; what was kept last comes last."""
        query = (
            "SELECT value FROM kept WHERE kind = ? AND owner = ? AND name = ifnull(?, name)"
            " ORDER BY rowid"
        )
        return [each for each, *_ in _decoded(self._db.execute(query, (kind, owner, name)), value)]

    def keep(self, kind: str, owner: str, name: str, value: msgspec.Struct) -> None:
        """In the place of what has that name."""
        values = (kind, owner, name, msgspec.json.encode(value))
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", values)

    @cached_property
    def _db(self) -> sqlite3.Connection:
        if not _HAS_SQLITE:
            raise OSError("this Python has no sqlite3 module")
        self._path.parent.mkdir(parents=True, exist_ok=True)
        db = self._opened.enter_context(closing(sqlite3.connect(self._path, timeout=0.2)))
        db.execute("PRAGMA synchronous = NORMAL")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            for statement in _TABLES:
                db.execute(statement)
        return db

    def _catch_up(self) -> None:
        """Read run files that it lacks, for a moment."""
        until = monotonic() + _CATCH_UP_S
        for path in self.unread():
            self.read(path)
            if monotonic() > until:
                break

    def _enter(self, path: Path, *values: object) -> None:
        # by its name in the folder of run files: that folder has several paths, or is copied
        key = os.fsencode(path.name if path.parent == runs_folder() else path)
        with self._db:
            statement = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?)"
            self._db.execute(statement, (key, *values))


def _is_gone(run_file: Path) -> bool:
    try:
        return not run_file.exists()
    except OSError:  # in a folder that cannot be read now
        return False


def _runs(rows: Iterable[tuple[Any, ...]]) -> list[PastRun]:
    """Return the runs of rows that begin with a run and the key of its file."""
    folder = runs_folder()
    return [
        replace(run, run_file=str(folder / os.fsdecode(key)))
        for run, key, *_ in _decoded(rows, PastRun)
    ]


def _decoded(rows: Iterable[tuple[Any, ...]], kind: type[_Type]) -> list[tuple[_Type, Any]]:
    """The rows whose first value is one of that type: another version may have written them."""
    decoder = msgspec.json.Decoder(kind)
    decoded = []
    for data, *others in rows:
        with suppress(*UNREADABLE, TypeError):
            decoded.append((decoder.decode(data), *others))
    return decoded


def _has_ended(path: Path) -> bool:
    """Return whether the last event of a run is in it: others may still be written."""
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
