"""What a command writes beside its run files: that it can is known before anything is measured."""

from __future__ import annotations

import os
from importlib import util
from pathlib import Path

from gpulab.core.files import PICTURES, check_writable, is_appended_to, read_regular
from gpulab.core.run_file import is_run_file
from gpulab.options import Options, UsageError, flag_of
from gpulab.show.display import MARKS

_PICTURE_MARKS = (b"Software\0gpulab", b"/Creator (gpulab)", b"<title>gpulab</title>")
_OURS = (*MARKS.values(), *_PICTURE_MARKS, b'"schema": "gpulab.', b'<testsuites name="gpulab"')
"""What only a file that was written here holds."""
_ENDINGS = {"plot": PICTURES, "export": tuple(MARKS)}


def check_outputs(options: Options) -> None:
    """UsageError where one cannot be made or written, or would replace a file of somebody else."""
    for name in ("json", "junit", "plot", "export", "trace"):
        target = options.file(name)
        if target is not None:
            check_output(name, target)


def check_output(name: str, target: Path) -> None:
    """The same of one, by the name of its option."""
    flag = flag_of(name).name
    endings = _ENDINGS.get(name, (target.suffix.lower(),))
    if target.suffix.lower() not in endings:
        raise UsageError(f"{flag} {target}: the name ends in {', '.join(endings)}")
    if name == "plot" and target.suffix.lower() != ".svg" and util.find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'gpulab[plot]'")
    try:
        check_writable(target)
        if not os.path.lexists(target) or is_appended_to(target):
            return
        if target.is_symlink():
            raise UsageError(f"{flag} {target}: it is a link, and a file of that name is there")
        data = read_regular(target, 1 << 28)
    except OSError as error:
        raise UsageError(f"{flag} {target}: {error.strerror}") from None
    if is_run_file(data):
        raise UsageError(f"{flag} {target}: that is a run file, which is never overwritten")
    ours = (*_OURS, b'"traceEvents"') if name == "trace" else _OURS
    if data.strip() not in (b"", b"[]", b"{}") and not any(mark in data for mark in ours):
        raise UsageError(
            f"{flag} {target}: a file that gpulab has not written is there; choose another name"
        )
