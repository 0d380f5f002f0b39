"""The start of a program that is followed, for both faces."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpulab.catalog.catalog import Entry
from gpulab.commit import version
from gpulab.core.files import read_regular
from gpulab.core.limits import SOURCE_BYTES
from gpulab.core.run_file import RunFile
from gpulab.session.program import ProgramSession
from gpulab.session.requests import program_of, program_request
from gpulab.session.settings import Settings, UsageError


def entry_of(command: Sequence[str]) -> Entry:
    """A program as lists show it."""
    program = program_of(command)
    source = ""
    with suppress(OSError, UnicodeDecodeError):
        if program.path.endswith(".py"):
            source = read_regular(Path(program.path), SOURCE_BYTES).decode()
    return Entry(
        name=program.scenario,
        path=Path(program.path),
        sha256=program.source_sha256,
        own=True,
        source=source,
        command=tuple(command),
    )


def start_program(
    command: Sequence[str], settings: Settings, path: Path, *, captured: bool
) -> ProgramSession:
    """Start it, with its events in a new file. UsageError where there can be no such file: then it
    was not started.
    """
    request = program_request(command, settings)
    try:
        file = RunFile(path, version())
    except OSError as error:
        message = f"no run file can be made at {path}: {error.strerror}; choose another path"
        raise UsageError(message) from None
    session = ProgramSession(request, file, command, captured=captured)
    session.start()
    return session
