"""Starts a program: to talk to it, or for what it prints."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from subprocess import DEVNULL as DEVNULL
from subprocess import PIPE as PIPE
from subprocess import TimeoutExpired as TimeoutExpired
from typing import Any

Process = subprocess.Popen


def spawn(command: Sequence[str], **how: Any) -> subprocess.Popen[bytes]:
    """As subprocess.Popen, with no buffer of its own: what a write leaves there would be written
    again when the pipe is closed. OSError.
    """
    return subprocess.Popen(command, bufsize=0, **how)


@dataclass(frozen=True)
class Captured:
    """The end of a program, and what it printed."""

    code: int
    output: bytes
    errors: bytes


class HangsError(Exception):
    """It did not end in time, and was killed."""


def capture(
    command: Sequence[str],
    timeout_s: float | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    started: Callable[[Callable[[], None]], object] = lambda kill: None,
    before: Callable[[], None] | None = None,
) -> Captured:
    """Run it to its end in a session of its own. `started` gets what kills it; `before` is called
    in its process. OSError where it cannot be started, HangsError where it does not end in time.
    """
    # Files, not pipes: a process that hangs in a driver survives even KILL, and must not be
    # waited for.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = spawn(
            command,
            stdin=DEVNULL,
            stdout=output,
            stderr=errors,
            env=environment,
            start_new_session=True,
            preexec_fn=before,
        )
        started(process.kill)
        try:
            code = _code_of(process, timeout_s)
        except TimeoutExpired:
            raise HangsError from None
        finally:
            if process.returncode is None:
                process.kill()
                with suppress(TimeoutExpired):
                    process.wait(1.0)
        output.seek(0)
        errors.seek(0)
        return Captured(code, output.read(), errors.read())


def _code_of(process: subprocess.Popen[bytes], timeout_s: float | None) -> int:
    """Wait for its end. The standard library's wait looks only every 50 ms where it has a limit."""
    with suppress(OSError):  # before Linux 5.3
        descriptor = os.pidfd_open(process.pid)
        try:
            select.select([descriptor], [], [], timeout_s)
            timeout_s = 0.0
        finally:
            os.close(descriptor)
    return process.wait(timeout_s)
