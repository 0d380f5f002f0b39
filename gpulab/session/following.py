"""The start of a program that is followed, for both faces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpulab.core.run_file import RunFile
from gpulab.session.program import ProgramSession
from gpulab.session.requests import program_request
from gpulab.session.settings import Settings, UsageError
from gpulab.version import __version__


def start_program(
    command: Sequence[str], settings: Settings, path: Path, *, captured: bool
) -> ProgramSession:
    """Start it, with its events in a new file. UsageError where there can be no such file: then it
    was not started.
    """
    request = program_request(command, settings)
    try:
        file = RunFile(path, __version__)
    except OSError as error:
        message = f"no run file can be made at {path}: {error.strerror}; choose another path"
        raise UsageError(message) from None
    session = ProgramSession(request, file, command, captured=captured)
    session.start()
    return session
