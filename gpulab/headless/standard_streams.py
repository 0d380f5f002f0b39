"""The three standard streams: always open, whoever started the program, and never the end of a run
that goes on.

What cannot be written to stdout is known at the end; what cannot be written to stderr is progress,
and is lost.
"""

from __future__ import annotations

import errno
import io
import os
import re
import select
import sys
from typing import Any, TextIO

from gpulab.core.text import one_line

OUTPUT_LOST = 74
"""The exit code where what was asked for could not be written: that of `EX_IOERR`."""
_SIZE = re.compile(r"[1-9][0-9]{1,3}")
"""Columns and lines that a terminal can have. COLUMNS=0 would print nothing at all."""


closed_by_caller: list[int] = []
"""Standard streams that were opened here, for the sake of this process alone."""


class OutputError(Exception):
    """Something asked for could not be written; the text says what and why."""


class _Stream(io.FileIO):
    """A descriptor whose first error is kept, and which takes everything after it without a
    word.
    """

    error: OSError | None = None
    ends_program = False
    """Whether a closed pipe ends the program."""

    def write(self, data: Any, /) -> int:
        if self.error is not None:
            return len(data)
        try:
            # whoever shares the terminal made it non-blocking
            while (written := super().write(data)) is None:
                select.select([], [self], [])
        except OSError as error:
            if self.ends_program and isinstance(error, BrokenPipeError):
                raise
            self.error = error
            return len(data)
        return written


def prepare() -> None:
    """Open what the caller has closed, and make both outputs take all that is written to them.

    A descriptor that is closed would be given to the next file or pipe that is opened, and be
    written to.
    """
    # writing to stdout is an error then
    for fd, flags in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, flags), True)
            closed_by_caller.append(fd)
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    if sys.stdout is sys.__stdout__:
        sys.stdout = _text_stream(1, sys.stdout, "strict")
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text_stream(2, sys.stderr, "backslashreplace")
    for name in ("COLUMNS", "LINES"):
        if not _SIZE.fullmatch(os.environ.get(name, "10")):
            del os.environ[name]


def check_stdout() -> None:
    """OutputError where some of what was printed was lost. BrokenPipeError where its
    reader has exited.
    """
    sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if isinstance(raw, _Stream) and raw.error is not None:
        reason = "it is closed" if raw.error.errno == errno.EBADF else raw.error.strerror
        raise OutputError(f"stdout cannot be written: {reason}")


def print_error(message: str) -> None:
    """One line on stderr, also of a message that holds control characters."""
    print(one_line(f"gpulab: {message}"), file=sys.stderr, flush=True)


def _text_stream(fd: int, like: TextIO | None, errors: str) -> TextIO:
    stream = _Stream(fd, "w", closefd=False)
    stream.ends_program = fd == 1  # what goes to stderr is progress
    return io.TextIOWrapper(
        io.BufferedWriter(stream),
        encoding=like.encoding if like else "utf-8",
        errors=like.errors if like else errors,
        line_buffering=True,
    )
