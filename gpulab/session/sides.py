"""What `--compare` measures anew: two revisions, folders, files or Python environments, each as a
side with a folder and a file of its own. Nothing in a user's checkout is written.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path

from gpulab.catalog.catalog import Entry, ScenarioNotFoundError, find, read_file
from gpulab.core.packages import package_of
from gpulab.core.units import plural
from gpulab.options import UsageError
from gpulab.session.launch import Launch
from gpulab.session.revisions import commit_of, top_level, write_revision

GIT, PYTHON = "git:", "python:"
_FILE = re.compile(r".+\.py(:[\w.]+(,[\w.]+)*)?", re.DOTALL)
HOW = "to measure write gpulab --compare git:main git:HEAD -- FILE:function"


@dataclass(frozen=True)
class Measured:
    """One side: `name` as it was given; the Python that runs it; the folder of its project, and of
    that the file. `is_ours`: the folder is a copy that is removed.
    """

    name: str
    python: str
    root: Path
    entry: Entry
    functions: tuple[str, ...] = ()
    revision: str = ""
    """The SHA of the commit, where it is one."""
    is_ours: bool = False
    lfs_pointers: int = 0
    """Files of the copy that are pointers of Git LFS, as they were committed."""

    @property
    def file(self) -> Path:
        return self.entry.path

    @property
    def launch(self) -> Launch:
        return Launch(self.entry, self.functions)

    @property
    def working_folder(self) -> Path:
        """Return, of a copy, the folder that corresponds to the user's, so that relative paths lead
        into the copy as well.
        """
        here = Path.cwd()
        if not self.is_ours:
            return here
        project = top_level(here)
        within = here.resolve().relative_to(project) if project else Path()
        folder = self.root / within
        return folder if folder.is_dir() else self.root

    def own(self, function: str | None) -> str | None:
        """FILE:function with this side's file, where it has that one too."""
        file, colon, name = (function or "").rpartition(":")
        if not colon:
            return function
        path = Path(os.path.realpath(file))
        project = top_level(path.parent)
        if project is not None and (self.root / path.relative_to(project)).is_file():
            path = self.root / path.relative_to(project)
        return f"{path}:{name}"

    @property
    def folders(self) -> list[str]:
        """Return what comes first on `sys.path`: of the project, then of the file itself."""
        imported_from, _ = package_of(self.file)
        folders = [self.root, self.root / "src", imported_from, self.file.parent]
        return list(dict.fromkeys(str(folder) for folder in folders if folder.is_dir()))


def is_measured(names: Sequence[str], what: Sequence[str]) -> bool:
    """Return whether both sides are to be measured: no run file has such a name."""
    if what or any(name.startswith((GIT, PYTHON)) for name in names):
        return True
    return len(names) == 2 and all(map(_FILE.fullmatch, names))


def sides_of(names: Sequence[str], what: Sequence[str], folder: Path) -> tuple[Measured, Measured]:
    """Both sides; revisions are written below `folder`. UsageError."""
    if len(names) != 2:
        raise UsageError(f"--compare takes two sides: {HOW}")
    if not what:
        if not all(map(_FILE.fullmatch, names)):
            raise UsageError(f"--compare {names[0]} {names[1]}: of what? {HOW}")
        before, after = (_of_file(name, name) for name in names)
        return _alike(before, after)
    if flag := next((word for word in what if word.startswith("-")), None):
        raise UsageError(f"{flag} stands after --: flags come before it")
    if len(what) != 1:
        raise UsageError("--compare measures one scenario, or functions of one file")
    subject = _subject(what[0])
    before = _side(names[0], subject, folder / "a")
    after = _side(names[1], subject, folder / "b")
    return _alike(before, after)


def _alike(before: Measured, after: Measured) -> tuple[Measured, Measured]:
    """Two functions of different names are one step under the name of the first."""
    if bool(before.functions) != bool(after.functions):
        raise UsageError("--compare: one side is a scenario, the other a function")
    if len(before.functions) != len(after.functions):
        raise UsageError(
            f"--compare: {before.name} names {plural(len(before.functions), 'function')}, "
            f"{after.name} {len(after.functions)}"
        )
    return before, after


@dataclass(frozen=True)
class _Subject:
    """A thing that is measured on both sides: a file within a project, and functions of it."""

    project: Path
    file: Path
    """Relative to the project."""
    functions: str


def _subject(what: str) -> _Subject:
    functions = ""
    if _FILE.fullmatch(what):
        file, _, functions = what.partition(".py:")
        path = Path(file if not functions else f"{file}.py")
    else:
        try:
            path = find(what).path
        except ScenarioNotFoundError as error:
            raise UsageError(str(error.args[0])) from None
    path = Path(os.path.realpath(path))
    project = top_level(path.parent) or Path.cwd().resolve()
    if not path.is_relative_to(project):
        project = path.parent
    return _Subject(project, path.relative_to(project), functions)


def _side(name: str, subject: _Subject, copy: Path) -> Measured:
    if name.startswith(PYTHON):
        python = _python(name.removeprefix(PYTHON))
        return replace(_of_path(name, subject.project, subject), python=python)
    if not name.startswith(GIT):
        if not Path(name).is_dir():
            raise UsageError(f"--compare {name}: no such folder; {HOW}")
        folder = Path(name).resolve()
        return _of_path(name, top_level(folder) or folder, subject)
    try:
        commit = commit_of(subject.project, name.removeprefix(GIT))
        pointers = write_revision(subject.project, commit, copy)
    except UsageError as error:
        raise UsageError(f"--compare {name}: {error} (in {subject.project})") from None
    side = _of_path(name, copy, subject)
    return replace(side, revision=commit, is_ours=True, lfs_pointers=pointers)


def _of_path(name: str, root: Path, subject: _Subject) -> Measured:
    file = root / subject.file
    if not file.is_file():
        raise UsageError(f"{name} has no file {subject.file}")
    return replace(_of_file(name, f"{file}:{subject.functions}".rstrip(":")), root=root)


def _of_file(name: str, what: str) -> Measured:
    path, _, functions = what.partition(".py:")
    file = Path(f"{path}.py" if functions else what)
    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    entry = read_file(file)
    if entry.error is not None:
        raise UsageError(f"{name}: {entry.error.message}; {entry.error.fix}")
    named = tuple(each.strip() for each in functions.split(",") if each.strip())
    if not named and entry.scenario is None:
        raise UsageError(f"{file} has no Scenario: write {file.name}:FUNCTION")
    root = top_level(entry.path.parent) or entry.path.parent
    return Measured(name, sys.executable, root, entry, named)


def _python(text: str) -> str:
    """An interpreter, or that of an environment's folder."""
    path = Path(text)
    if path.is_dir():
        path = path / "bin" / "python"
    found = shutil.which(path)
    if found is None:
        raise UsageError(f"--compare {PYTHON}{text}: no such Python; write {PYTHON}ENV/bin/python")
    # its links say which environment it is of
    return os.path.abspath(found)  # noqa: PTH100


def digest(path: Path) -> str:
    """The SHA-256 of a file; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
