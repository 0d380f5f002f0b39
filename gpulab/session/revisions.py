"""Revisions of a project, read through git: nothing that a checkout or its `.git` names is run, no
remote is asked, and nothing there is written.
"""

from __future__ import annotations

import os
from pathlib import Path

from gpulab.core.files import files_below, read_regular
from gpulab.core.text import cut, plain
from gpulab.options import UsageError
from gpulab.proc.spawn import capture

_GIT_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR")
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    # the objects that a partial clone lacks are not fetched; git before 2.45 knows the second only
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}
_NO_CONFIGURATION = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


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
    """Write the files of a commit, and count the pointers of Git LFS. UsageError.

    They are checked out of a repository of our own that borrows the objects: so hooks, filters, the
    attributes of the working tree and a remote are none of it. A worktree would be noted in the
    user's, and an archive leaves out what is export-ignore.
    """
    target.mkdir()
    own = target.with_suffix(".git")
    kind = _git(project, "rev-parse", "--show-object-format").strip()
    objects = project / _git(project, "rev-parse", "--git-path", "objects").strip()
    options = ("--quiet", "--bare", "--template=", f"--object-format={kind}")
    _git(target, "init", *options, str(own), environment=_NO_CONFIGURATION)
    (own / "objects/info/alternates").write_text(f"{objects.resolve()}\n")
    environment = {**_NO_CONFIGURATION, "GIT_DIR": str(own), "GIT_WORK_TREE": str(target)}
    _git(target, "read-tree", commit, environment=environment)
    _git(target, "checkout-index", "--all", "--quiet", environment=environment)
    return sum(map(_is_pointer, files_below(target, [])))


def _is_pointer(file: Path) -> bool:
    try:
        return read_regular(file, 1024).startswith(b"version https://git-lfs.github.com/spec/")
    except OSError:  # most are larger
        return False


def _git(folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> str:
    """Run a git command, and return what it prints. UsageError where it fails."""
    # a hook of git sets those of its own repository
    usual = {name: value for name, value in os.environ.items() if name not in _GIT_VARIABLES}
    try:
        ended = capture(
            ["git", "-C", str(folder), *arguments],
            environment={**usual, **_ENVIRONMENT, **(environment or {})},
        )
    except OSError as error:
        raise UsageError(f"git cannot be run: {error.strerror}") from None
    if ended.code:
        words = plain(ended.errors.decode(errors="replace")).strip() or f"exit {ended.code}"
        raise UsageError(f"git {arguments[0]}: {cut(words, 200)}")
    return ended.output.decode(errors="surrogateescape")
