"""Run files that nobody needs any more: of each scenario the oldest beyond a number.

Deleted is only what is in the folder of run files, is a regular file with that one name, and holds
a run that has ended: not one that goes on, whether it is being written here or by another host, nor
one that was linked to elsewhere.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gpulab.core.files import is_held, open_regular
from gpulab.features.history.report import PastRun
from gpulab.session.run_files import runs_folder

_SNAPSHOTS = ".pickle"
"""Of memory, beside the run file whose name theirs begin with."""


class PrunedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is deleted, or could not be, for a `problem`."""

    file: str
    bytes: int
    problem: str | None = None


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """What --prune did, or with --dry-run would do."""

    schema: str = "gpulab.pruned/1"
    folder: str
    keep: int
    """Runs of each scenario."""
    dry_run: bool
    files: list[PrunedFile]
    bytes: int
    """Of those that are gone."""


def prune(runs: Sequence[PastRun], keep: int, *, dry_run: bool) -> Pruned:
    """Delete the files of these runs beyond the newest `keep` of each scenario, the oldest
    first.
    """
    paths = sorted(_beyond(runs, keep))
    files = [_deleted(path, dry_run=dry_run) for path in _with_snapshots(paths)]
    return Pruned(
        folder=str(runs_folder()),
        keep=keep,
        dry_run=dry_run,
        files=files,
        bytes=sum(file.bytes for file in files if file.problem is None),
    )


def _beyond(runs: Sequence[PastRun], keep: int) -> Iterator[Path]:
    folder = runs_folder()
    seen: dict[tuple[str, str], int] = {}
    for run in sorted(runs, key=lambda run: run.at, reverse=True):
        scenario = run.path, run.scenario
        seen[scenario] = seen.get(scenario, 0) + 1
        path = Path(run.run_file)
        if seen[scenario] > keep and path.parent == folder and _is_ours_alone(path):
            yield path


def _is_ours_alone(path: Path) -> bool:
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False
        with open_regular(path) as file:
            return not is_held(file.fileno())
    except OSError:
        return False


def _with_snapshots(paths: Sequence[Path]) -> Iterator[Path]:
    """Each with the memory snapshots of its run, which are far larger."""
    if not paths:
        return
    stems = tuple(f"{path.stem}-" for path in paths)
    yield from paths
    for entry in os.scandir(runs_folder()):
        name = entry.name
        if name.endswith(_SNAPSHOTS) and name.startswith(stems) and _is_ours_alone(Path(entry)):
            yield Path(entry)


def _deleted(path: Path, *, dry_run: bool) -> PrunedFile:
    size = 0
    problem = None
    try:
        size = path.lstat().st_size
        if not dry_run:
            path.unlink()
    except OSError as error:
        problem = error.strerror or str(error)
    return PrunedFile(file=path.name, bytes=size, problem=problem)
