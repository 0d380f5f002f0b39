"""Revisions of a project, read through git: nothing that a checkout or its `.git` names is run, no
remote is asked, and nothing there is written.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from gpulab.core.text import cut, plain
from gpulab.session.settings import UsageError

_OF_A_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_CLOSED = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    # the objects that a partial clone lacks are not fetched; git before 2.45 knows the second only
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
_LINK, _SUBMODULE, _EXECUTABLE = "120000", "160000", "100755"
_LFS = b"version https://git-lfs.github.com/spec/"
_LFS_BYTES = 1024
_CHUNK = 1 << 20


def top_level(folder: Path) -> Path | None:
    """The checkout that a folder is part of; None where it is of none, or git is missing."""
    try:
        output = _git(folder, "rev-parse", "--show-toplevel").strip()
    except UsageError:
        return None
    return Path(output) if output else None


def commit_of(project: Path, revision: str) -> str:
    """Its SHA. UsageError where there is none, or git refuses the repository."""
    _git(project, "rev-parse", "--show-toplevel")  # it may be of another user
    name = f"{revision}^{{commit}}"
    try:
        return _git(project, "rev-parse", "--verify", "--quiet", "--end-of-options", name).strip()
    except UsageError:
        raise UsageError("no such revision") from None


def write_revision(project: Path, commit: str, target: Path) -> int:
    """Write the files of a commit as they were committed, and count the pointers of Git LFS.

    A checkout would convert them, by filters of the user and by attributes of the working tree; a
    worktree would be noted in the repository, and an archive leaves out what is export-ignore.
    """
    target.mkdir()
    entries = _entries(project, commit)
    links: list[tuple[Path, bytes]] = []
    pointers = 0
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as errors:
        wanted.writelines(f"{sha}\n".encode() for mode, sha, _ in entries if mode != _SUBMODULE)
        wanted.seek(0)
        with _started(project, ("cat-file", "--batch"), wanted, errors) as process:
            assert process.stdout is not None
            for mode, sha, name in entries:
                path = target / name
                if mode == _SUBMODULE:
                    path.mkdir(parents=True, exist_ok=True)
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                size = _size(process.stdout, sha)
                if size is None:
                    process.kill()
                    process.wait()
                    why = _text(errors) or "its content is not here"
                    raise UsageError(f"git cat-file: {name}: {why}")
                if mode == _LINK:
                    links.append((path, process.stdout.read(size)))
                else:
                    pointers += _write(process.stdout, size, path)
                if mode == _EXECUTABLE:
                    path.chmod(0o755)
                process.stdout.read(1)
    for path, leads_to in links:  # last: nothing is written through one
        path.symlink_to(os.fsdecode(leads_to))
    return pointers


def _entries(project: Path, commit: str) -> list[tuple[str, str, str]]:
    """(mode, SHA, name) of each file. UsageError for a name that git itself would not write."""
    entries = []
    listed = _git(project, "ls-tree", "-r", "-z", "--full-tree", commit)
    for line in filter(None, listed.split("\0")):
        facts, _, name = line.partition("\t")
        mode, _, sha = facts.split(" ")
        if {"", ".", "..", ".git"} & set(name.lower().split("/")):
            raise UsageError(f"commit {commit[:12]} has a file {name}, which leads out of it")
        entries.append((mode, sha, name))
    return entries


def _size(output: IO[bytes], sha: str) -> int | None:
    """Of the blob that comes next; None where it does not."""
    words = output.readline().decode(errors="replace").split()
    if len(words) == 3 and words[:2] == [sha, "blob"]:
        return int(words[2])
    return None


def _write(source: IO[bytes], size: int, path: Path) -> bool:
    """Returns whether it is a pointer of Git LFS."""
    left = size
    start = b""
    with path.open("xb") as file:
        while left and (part := source.read(min(left, _CHUNK))):
            start = start or part
            file.write(part)
            left -= len(part)
    return size < _LFS_BYTES and start.startswith(_LFS)


def _git(folder: Path, *arguments: str) -> str:
    """What a git command prints. UsageError where it fails."""
    with tempfile.TemporaryFile() as errors, _started(folder, arguments, None, errors) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        if process.wait():
            words = _text(errors) or f"exit {process.returncode}"
            raise UsageError(f"git {arguments[0]}: {words}")
    return output.decode(errors="surrogateescape")


def _started(
    folder: Path, arguments: Sequence[str], source: IO[bytes] | None, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    """A git command, in a session of its own: Ctrl+C ends gpulab alone, which says how it ended."""
    # a hook of git sets those of its own repository
    usual = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    try:
        return subprocess.Popen(
            ["git", *_CLOSED, "-C", str(folder), *arguments],
            stdin=subprocess.DEVNULL if source is None else source,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            env={**usual, **_ENVIRONMENT},
        )
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}") from None


def _text(errors: IO[bytes]) -> str:
    """What a command said on stderr, in one line."""
    errors.seek(0)
    return cut(plain(errors.read(_CHUNK).decode(errors="replace")).strip(), 200)
