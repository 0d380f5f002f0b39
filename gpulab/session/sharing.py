"""A folder of run files that others watch: whether they can read them, by the permissions of the
system alone. Nothing is made readable that its owner did not make so.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from gpulab.catalog.source import is_folder, real_path
from gpulab.core.files import MODE
from gpulab.options import UsageError


def check_share(folder: Path) -> str | None:
    """Why nobody else could read run files that this process writes there, and how to mend it; None
    where others can. UsageError where it can write none.
    """
    if not is_folder(folder):
        raise UsageError(
            f"--share {folder}: there is no such folder: mkdir -m 2755 {folder} makes one that all "
            "can read"
        )
    probe = folder / f".gpulab-{os.urandom(4).hex()}.probe"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE))
        try:
            status = probe.stat()
        finally:
            probe.unlink()
    except OSError as error:
        raise UsageError(f"--share {folder}: {error.strerror or error}") from None
    return _hidden(real_path(folder), status)


def _hidden(folder: Path, file: os.stat_result) -> str | None:
    """`file`: of one that was made in the folder."""
    if not file.st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return (
            f"nobody else can read run files in {folder} ({stat.filemode(file.st_mode)}): the "
            "umask hides them; umask 027 first shows them to the group"
        )
    for_all = bool(file.st_mode & stat.S_IROTH)
    if not for_all and (own := _own_group(file.st_gid)):
        return (
            f"only the group {own} can read run files in {folder}, which is yours alone: "
            f"chgrp CLASS {folder}; chmod g+s {folder}"
        )
    for place in (folder, *folder.parents):
        needed = stat.S_IROTH | stat.S_IXOTH if place == folder else stat.S_IXOTH
        if not _lets_in(place.stat(), file, needed, for_all=for_all):
            letter, kept_out = ("o", "others") if for_all else ("g", "the group")
            return (
                f"{kept_out} cannot look into {place}: chmod {letter}+rx {place}, or share "
                "another folder"
            )
    return None


def _lets_in(place: os.stat_result, file: os.stat_result, needed: int, *, for_all: bool) -> bool:
    """Return whether who may read the file has these rights, as bits of others, in a folder."""
    if place.st_mode & needed == needed:
        return True
    of_group = needed << 3
    return not for_all and place.st_gid == file.st_gid and place.st_mode & of_group == of_group


def _own_group(gid: int) -> str:
    """The name of a group that has this user alone, as many systems give to each; else empty."""
    with suppress(ImportError, KeyError):
        import grp
        import pwd

        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(gid)
        if group.gr_name == user and user != "root" and not set(group.gr_mem) - {user}:
            return user
    return ""
