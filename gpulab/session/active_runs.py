"""Which runs of a folder go on, and which have ended, by their files alone."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import time

from gpulab.catalog.source import is_folder
from gpulab.core.events import RunEnded, RunStarted
from gpulab.core.files import PACKED, is_held, open_regular
from gpulab.core.host import host_name
from gpulab.core.jobs import subject_of
from gpulab.core.run_file import RunFileError, lines_of
from gpulab.core.wire import decode
from gpulab.options import UsageError
from gpulab.report.build import CALIBRATION
from gpulab.session.run import FileSource, Source
from gpulab.session.run_files import runs_folder
from gpulab.session.saved import SUFFIXES, find_run
from gpulab.session.tail import TailSource

_SILENT_S = 60.0
_STARTED, _ENDED = (kind.__struct_config__.tag for kind in (RunStarted, RunEnded))
_END = b'{"type":"%s"' % str(_ENDED).encode()


def place_of(name: str) -> Path:
    """Return the place to look for what somebody wants to watch: a folder of runs, by default that
    of this user, or a run file, which may not be there yet. UsageError where there is nothing of
    that name.
    """
    if not name:
        return runs_folder()
    path = Path(name)
    if path.is_file() or is_folder(path):
        return path
    if name.endswith(SUFFIXES) and is_folder(path.parent):
        return path
    if os.sep in name:
        raise UsageError(f"there is no folder {path.parent if path.suffix else path}")
    with suppress(OSError):
        for run in RunsFolder(runs_folder()).scan():
            if run.goes_on and run.scenario == name:
                return run.path
    return find_run(name)


def source_of(path: Path) -> Source:
    """Return the source of a run file that may grow. RunFileError and OSError of one that is
    packed, which does not.
    """
    return FileSource(path) if path.suffix == PACKED else TailSource(path)


@dataclass(frozen=True)
class RunInfo:
    """A run by its file. `goes_on`: its process writes it, as far as can be seen from here."""

    path: Path
    started: RunStarted
    goes_on: bool

    @property
    def scenario(self) -> str:
        subject = subject_of(self.started.request.job)
        return subject.scenario if subject else CALIBRATION


class RunsFolder:
    """Looked at again and again: a file that has ended is opened once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._changed: int | None = None
        self._runs: dict[str, RunInfo] = {}
        self._newest: list[str] = []

    def scan(self) -> list[RunInfo]:
        """The newest runs, the newest first. OSError where the folder cannot be read; one that is
        not there has none.
        """
        try:
            changed = self.folder.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        if changed != self._changed:  # a file came, or went
            self._newest = _newest(self.folder)
            self._changed = changed
        runs = {}
        for name in self._newest:
            before = self._runs.get(name)
            run = before if before and not before.goes_on else _found(self.folder / name, before)
            if run is not None:
                runs[name] = run
        self._runs = runs
        return sorted(runs.values(), key=lambda run: run.started.at, reverse=True)


def _newest(folder: Path) -> list[str]:
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".jsonl"):
                with suppress(OSError):  # it was deleted by now
                    files.append((entry.stat().st_mtime, entry.name))
    return [name for _, name in sorted(files, reverse=True)[:30]]


def _found(path: Path, before: RunInfo | None) -> RunInfo | None:
    """None where it is no run file, has not begun, or may not be read."""
    try:
        started = before.started if before else _start_of(path)
        if started is None:
            return None
        return RunInfo(path, started, _goes_on(path, started))
    except (OSError, RunFileError, ValueError):
        return None


def _start_of(path: Path) -> RunStarted | None:
    for _, line in lines_of(path, [str(_STARTED)]):
        event = decode(line)
        return event if isinstance(event, RunStarted) else None
    return None


def _goes_on(path: Path, started: RunStarted) -> bool:
    with open_regular(path) as file:
        if is_held(file.fileno()):
            return True
        status = os.fstat(file.fileno())
        file.seek(max(0, status.st_size - 4096))
        if file.read().rstrip().rpartition(b"\n")[2].startswith(_END):
            return False
        # its host may have a lock that is not seen here
        return started.host != host_name() and time() - status.st_mtime < _SILENT_S
